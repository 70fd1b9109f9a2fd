package models

import "example.com/ringcheck/reference/ring"

// Shape is what a real model asks of its caches. Of each field it says what the
// sources say; a dtype that they leave out is 0.
type Shape struct {
	Name             string
	KVHeads          int // of the layers that have a window
	KeyDim, ValueDim int // width of a head, in elements
	Window           int
	Chunked          bool // the window restarts at multiples of its size
	Layers           int  // of the whole model
	// Every: one layer in so many, the last of each run, attends to everything;
	// 0 where all have the window. First: the very first layer does so too.
	Every   int
	First   bool
	DType   ring.DType
	Sources []string
}

// WindowLayers counts the layers that have a window.
func (s *Shape) WindowLayers() int {
	n := s.Layers
	if s.Every > 0 {
		n -= s.Layers / s.Every
	}
	if s.First && s.Every != 1 {
		n--
	}
	return n
}

const (
	hub          = "https://huggingface.co/"
	transformers = "https://github.com/huggingface/transformers/blob/main/src/transformers/models/"
)

// Shapes are those of known models with sliding windows, from their public
// configuration files or copies of them.
var Shapes = []Shape{
	{
		Name: "Gemma 2 9B", KVHeads: 8, KeyDim: 256, ValueDim: 256, Window: 4096, Layers: 42, Every: 2, DType: ring.BFloat16,
		Sources: []string{hub + "hfhugs/gemma-2-9b-it/blob/main/config.json", transformers + "gemma2/configuration_gemma2.py"},
	},
	{
		Name: "Gemma 2 27B", KVHeads: 16, KeyDim: 128, ValueDim: 128, Window: 4096, Layers: 46, Every: 2, DType: ring.BFloat16,
		Sources: []string{
			hub + "prithivMLmods/Blaze.1-27B-Reflection/blob/736d075e8bf812f6bee85aab246f9dea431519f6/config.json",
			transformers + "gemma2/configuration_gemma2.py",
		},
	},
	{
		Name: "Gemma 3 270M", KVHeads: 1, KeyDim: 256, ValueDim: 256, Window: 512, Layers: 18, Every: 6, DType: ring.BFloat16,
		Sources: []string{hub + "jrcastropy/functiongemma-270m-it-simple-tool-calling/blob/main/config.json"},
	},
	{
		Name: "gpt-oss-20b", KVHeads: 8, KeyDim: 64, ValueDim: 64, Window: 128, Layers: 24, Every: 2, DType: ring.BFloat16,
		Sources: []string{
			hub + "cryptonaut/AltiMind-sft/blob/main/config.json",
			"https://docs.nvidia.com/nemo/megatron-bridge/nightly/models/llm/gpt-oss.html",
		},
	},
	{
		Name: "Mistral 7B v0.1", KVHeads: 8, KeyDim: 128, ValueDim: 128, Window: 4096, Layers: 32, DType: ring.BFloat16,
		Sources: []string{
			hub + "mlx-community/mistral-7B-v0.1/blob/bd10b289a348d5c9b49bed31feb63c4b2e8c7089/config.json",
			hub + "Open-Orca/Mistral-7B-OpenOrca/blob/refs%2Fpr%2F19/config.json",
		},
	},
	{
		Name: "Ministral 8B 2410", KVHeads: 8, KeyDim: 128, ValueDim: 128, Window: 32768, Layers: 36, DType: ring.BFloat16,
		Sources: []string{hub + "rivaon/sydney/blob/main/config.json"},
	},
	{
		Name: "Phi-3 mini 4k", KVHeads: 32, KeyDim: 96, ValueDim: 96, Window: 2047, Layers: 32, DType: ring.BFloat16,
		Sources: []string{hub + "Alignment-Lab-AI/idfkphi4kiguess/blob/main/config.json"},
	},
	{
		Name: "Command R7B", KVHeads: 8, KeyDim: 128, ValueDim: 128, Window: 4096, Layers: 32, Every: 4, DType: ring.BFloat16,
		Sources: []string{hub + "huihui-ai/c4ai-command-r7b-12-2024-abliterated/blob/main/config.json"},
	},
	{
		Name: "StarCoder2 3B", KVHeads: 2, KeyDim: 128, ValueDim: 128, Window: 4096, Layers: 30, DType: ring.BFloat16,
		Sources: []string{hub + "andstor/peft-unit-test-generation-experiments/blob/main/full_fine-tuning/bigcode/starcoder2-3b/config.json"},
	},
	{
		Name: "OLMo 3 7B", KVHeads: 32, KeyDim: 128, ValueDim: 128, Window: 4096, Layers: 32, Every: 4, DType: ring.BFloat16,
		Sources: []string{
			hub + "mlx-community/Olmo-3-7B-RLZero-Code-4bit/blob/main/config.json",
			transformers + "olmo3/configuration_olmo3.py",
		},
	},
	{
		Name: "Llama 4 Scout", KVHeads: 8, KeyDim: 128, ValueDim: 128, Window: 8192, Chunked: true, Layers: 48, Every: 4,
		Sources: []string{transformers + "llama4/configuration_llama4.py"},
	},
	{
		Name: "MiMo-V2-Flash", KVHeads: 8, KeyDim: 192, ValueDim: 128, Window: 128, Layers: 48, Every: 6, First: true,
		Sources: []string{
			"https://docs.nvidia.com/nemo/automodel/nemo-automodel/nemo_automodel/components/models/mimo_v2_flash/config",
			"https://www.themoonlight.io/zh/review/mimo-v2-flash-technical-report",
		},
	},
}
