package reference

// Quirk is a row of the quirk ledger: where the two semantics part, or where
// mlx-lm is odd and both are.
//
// There is a row for every id D, O and S, and for each M, P and Q whose case
// answers differently under the two semantics or shows an oddity that both
// have. Rows are never deleted: one that upstream has put right says so in Gone
// and gives what the pinned version answers, which is right.
type Quirk struct {
	ID       string
	Sentence string // what mlx-lm does, unless it says otherwise
	Link     string // the report, or the source where there is none

	// Case is the case of corpus/cases/known that shows it: Field is the field
	// of the answer to operation Step (a field of a want or of a state), MLXLM
	// and Exact are its values as compact JSON, or "error:CODE". The same
	// operations are run under both semantics. Exact refuses, as not_supported,
	// to make the caches that it does not have.
	Case         string
	Step         int
	Field        string
	MLXLM, Exact string

	Test string // the Go test that shows it, where no case can; no Case then
	Gone string // the first release of mlx-lm without it; "" while it is there
}

// cacheSource is where a row without a report was read: mlx-lm's caches in the
// state in which they were described. Line for line, some of it has changed
// since; the cases have not.
const cacheSource = "https://github.com/ml-explore/mlx-lm/blob/d78bf58e217c904ec282ed8da9b947491f78c022/mlx_lm/models/cache.py"

// Ledger is the quirk ledger, for mlx-lm 0.32.2.
var Ledger = []Quirk{
	// Reports against mlx-lm.
	{
		ID: "M23", Link: "https://github.com/ml-explore/mlx-lm/issues/1250",
		Sentence: "A batch ring that had not wrapped was loaded as one that had.",
		Case:     "M23", Step: 3, Field: "rotated", MLXLM: "false", Exact: "false",
		Gone: "0.32.0",
	},
	{
		ID: "M26", Link: "https://github.com/ml-explore/mlx-lm/issues/1736",
		Sentence: "The mask of recurrent state heeded left padding or lengths, not both, so that an all-empty merge hid no padding.",
		Case:     "M26", Step: 5, Field: "mask", MLXLM: `[["1111"],["1100"]]`, Exact: "error:not_supported",
		Gone: "0.32.0",
	},
	{
		ID: "M27", Link: "https://github.com/ml-explore/mlx-lm/issues/1736",
		Sentence: "A filter of an empty batch without a window takes the shared left padding off its write position, which falls below zero.",
		Case:     "M27", Step: 1, Field: "idx", MLXLM: "-2", Exact: "error:not_supported",
	},
	{
		ID: "M28", Link: "https://github.com/Blaizzy/mlx-vlm/issues/1889",
		Sentence: "A filter during a padded prefill does not filter what is pending: finalize makes two rows of one.",
		Case:     "M28", Step: 4, Field: "offset", MLXLM: "[4,2]", Exact: "[2]",
	},
	{
		ID: "M29", Link: "https://github.com/ml-explore/mlx-lm/issues/1746",
		Sentence: "An extract before finalize brings trailing padding as if it were tokens.",
		Case:     "M29", Step: 3, Field: "stored", MLXLM: "[[11,12,-1,-2]]", Exact: "error:pending_padding",
	},
	{
		ID: "M30", Link: "https://github.com/ml-explore/mlx-lm/issues/1494",
		Sentence: "A list answers what its last child trimmed, though another gave back more.",
		Case:     "M30", Step: 5, Field: "trimmed", MLXLM: "3", Exact: "error:not_supported",
	},
	{
		ID: "M31", Link: "https://github.com/ml-explore/mlx-lm/issues/1512",
		Sentence: "A direct trim of a wrapped ring moves its write position below zero, and the next token is written nowhere.",
		Case:     "M31", Step: 5, Field: "stored", MLXLM: "[[5,6,3,4]]", Exact: "[[5,6,7,4]]",
	},
	{
		ID: "M32", Link: "https://github.com/ml-explore/mlx-lm/issues/846",
		Sentence: "A ring that fills while drafts are verified cannot give them back, and a trim is taken all the same.",
		Case:     "M32", Step: 3, Field: "trimmed", MLXLM: "2", Exact: "error:not_trimmable",
	},
	{
		ID: "M33", Link: "https://github.com/ml-explore/mlx-lm/issues/1528",
		Sentence: "A negative trim moves the offset past the data, and zeros are attended to.",
		Case:     "M33", Step: 7, Field: "returned", MLXLM: "[[11,12,13,0,0,14]]", Exact: "[[11,12,13,14]]",
	},
	{
		ID: "M34", Link: "https://github.com/ml-explore/mlx-lm/issues/950",
		Sentence: "An update of no tokens cuts a full ring short, and the next decode raises.",
		Case:     "M34", Step: 5, Field: "returned", MLXLM: "error:raises", Exact: "[[5,6,7,4]]",
	},
	{
		ID: "M35", Link: "https://github.com/ml-explore/mlx-lm/issues/1631",
		Sentence: "A merge forgets the sinks of a ring, and the next decode overwrites the first of them.",
		Case:     "M35", Step: 6, Field: "stored", MLXLM: "[[9,2,7,8]]", Exact: "error:keep",
	},
	{
		ID: "M36", Link: "https://github.com/ml-explore/mlx-lm/issues/1573",
		Sentence: "A ring has no quantized form.",
		Case:     "M36", Step: 2, Field: "stored", MLXLM: "error:not_supported", Exact: "[[1,2,3]]",
	},
	{
		ID: "M37", Link: "https://github.com/ml-explore/mlx-lm/issues/118",
		Sentence: "A ring stops being trimmable when its window is full, before anything is evicted.",
		Case:     "M37", Step: 2, Field: "trimmable", MLXLM: "false", Exact: "false",
	},

	// Reports against ports and consumers.
	{
		ID: "P04", Link: "https://github.com/ml-explore/mlx-swift-lm/issues/584",
		Sentence: "A trim past the wrap moves the write position back without giving back what was overwritten.",
		Case:     "P04", Step: 5, Field: "returned", MLXLM: "[[7,6,3,4]]", Exact: "[[5,6,7,4]]",
	},
	{
		ID: "P10", Link: "https://github.com/ollama/ollama/commit/dd5eb6337",
		Sentence: "The rewind of one token that an exact prompt hit needs is taken by a full ring, which has lost the token before its window.",
		Case:     "P10", Step: 3, Field: "trimmed", MLXLM: "1", Exact: "error:not_trimmable",
	},
	{
		ID: "P13", Link: "https://github.com/waybarrios/vllm-mlx/issues/353",
		Sentence: "A ring trimmed below its window holds other tokens than its offset counts, and a merge believes the offset.",
		Case:     "P13", Step: 7, Field: "stored", MLXLM: "[[5,6],[0,11]]", Exact: "[[3,4,5,6],[0,0,0,11]]",
	},
	{
		ID: "P19", Link: "https://github.com/Blaizzy/mlx-vlm/issues/1869",
		Sentence: "A row extracted from a batch list is a list of serial caches, which have no extract.",
		Case:     "P19", Step: 5, Field: "error", MLXLM: "error:raises", Exact: "error:not_supported",
	},
	{
		ID: "P26", Link: "https://github.com/joshuarossi/mlx-bun",
		Sentence: "A block while padding is pending, on a wrapped ring, hides the oldest token of a padded row (O-1).",
		Case:     "P26", Step: 7, Field: "mask", MLXLM: `[["11110","01111"],["00110","00111"]]`, Exact: `[["11110","01111"],["01110","01111"]]`,
	},

	// Quirks found by reading and running it.
	{
		ID: "Q01", Link: cacheSource,
		Sentence: "A block's mask on a wrapped ring hides the oldest token of a padded row (O-1).",
		Case:     "Q01", Step: 3, Field: "mask", MLXLM: `[["11110","01111"],["01110","01111"]]`, Exact: `[["11110","01111"],["11110","01111"]]`,
	},
	{
		ID: "Q02", Link: cacheSource,
		Sentence: "A chunk of one token is refused while padding is pending.",
		Case:     "Q02", Step: 3, Field: "returned", MLXLM: "error:pending_padding", Exact: "[[1,2,3],[-1,11,-2]]",
	},
	{
		ID: "Q03", Link: cacheSource,
		Sentence: "A batch that was loaded lacks the field of what is pending: its finalize raises.",
		Case:     "Q03", Step: 4, Field: "offset", MLXLM: "error:raises", Exact: "[2,1]",
	},
	{
		ID: "Q04", Link: cacheSource,
		Sentence: "A trim of a batch is the same for all rows and passes the start of a short one.",
		Case:     "Q04", Step: 2, Field: "offset", MLXLM: "[2,-1]", Exact: "error:not_supported",
	},
	{
		ID: "Q05", Link: cacheSource,
		Sentence: "The mask of a block takes sinks for old columns, and hides them.",
		Case:     "Q05", Step: 3, Field: "mask", MLXLM: `[["11110","01111"]]`, Exact: "error:keep",
	},
	{
		ID: "Q07", Link: cacheSource,
		Sentence: "A ring with as many sinks as columns never takes another token.",
		Case:     "Q07", Step: 3, Field: "returned", MLXLM: "[[1,2,3,4]]", Exact: "error:keep",
	},
	{
		ID: "Q08", Link: cacheSource,
		Sentence: "A ring hands out its own arrays: what was read from it changes when it is written in place. Here arrays are copied at the border, under either semantics.",
		Test:     "TestQ08NothingIsShared",
	},
	{
		ID: "Q09", Link: cacheSource,
		Sentence: "A ring takes a trim right after an overshoot, and the next decode cuts the front of all columns, the trimmed ones included; a file in between does not help.",
		Case:     "Q09", Step: 2, Field: "trimmed", MLXLM: "3", Exact: "error:not_trimmable",
	},
	{
		ID: "Q10", Link: cacheSource,
		Sentence: "A ring takes a trim of a block on a full window, and the next decode still shows what was rejected.",
		Case:     "Q10", Step: 5, Field: "trimmed", MLXLM: "1", Exact: "error:not_trimmable",
	},
	{
		ID: "Q11", Link: cacheSource,
		Sentence: "A ring trimmed below its window answers a mask narrower than what its next block returns.",
		Case:     "Q11", Step: 5, Field: "mask", MLXLM: `[["1110","1111"]]`, Exact: `[["11110","01111"]]`,
	},
	{
		ID: "Q12", Link: cacheSource,
		Sentence: "A trim leaves a wrapped batch ring rotated, with a negative write position.",
		Case:     "Q12", Step: 4, Field: "returned", MLXLM: "[[5,2,6],[15,12,16]]", Exact: "[[5,6,3,4],[15,16,13,14]]",
	},
	{
		ID: "Q13", Link: cacheSource,
		Sentence: "An extract from an empty batch raises. (Since 0.32.0 an empty cache can be saved.)",
		Case:     "Q13", Step: 5, Field: "offset", MLXLM: "error:raises", Exact: "0",
	},
	{
		ID: "Q15", Link: cacheSource,
		Sentence: "Size is not what is stored: a quantized cache without a window always says 0.",
		Case:     "Q15", Step: 3, Field: "size", MLXLM: "0", Exact: "error:not_supported",
	},
	{
		ID: "Q16", Link: cacheSource,
		Sentence: "An extend joins rings of different windows.",
		Case:     "Q16", Step: 4, Field: "left_padding", MLXLM: "[1,0]", Exact: "error:max_size",
	},
	{
		ID: "Q18", Link: cacheSource,
		Sentence: "A filter takes the shared padding off a batch without a window, and leaves it in a batch ring.",
		Case:     "Q18", Step: 2, Field: "idx", MLXLM: "1", Exact: "error:not_supported",
	},
	{
		ID: "Q20", Link: cacheSource,
		Sentence: "Finalize rolls a batch without a window over its whole buffer, unused tail included.",
		Case:     "Q20", Step: 3, Field: "stored", MLXLM: "[[1,2,3,4,5,0,0,0],[0,0,11,12,13,-1,-2,0]]", Exact: "error:not_supported",
	},
	{
		ID: "Q24", Link: cacheSource,
		Sentence: "A window of 0 hides everything from one query of a ring.",
		Case:     "Q24", Step: 6, Field: "mask", MLXLM: `[["0000"]]`, Exact: "error:window",
	},
	{
		ID: "Q25", Link: cacheSource,
		Sentence: "A roll wraps, by any number and to either side.",
		Case:     "Q25", Step: 3, Field: "stored", MLXLM: "[[0,1,2,3],[12,13,0,11]]", Exact: "error:not_supported",
	},
	{
		ID: "Q27", Link: cacheSource,
		Sentence: "An extract right after a block is all of the overshoot.",
		Case:     "Q27", Step: 2, Field: "stored", MLXLM: "[[1,2,3,4,5,6]]", Exact: "[[1,2,3,4,5,6]]",
	},
	{
		ID: "Q29", Link: cacheSource,
		Sentence: "How many columns are allocated depends on how the tokens came.",
		Case:     "Q29", Step: 4, Field: "buffer", MLXLM: "9", Exact: "9",
	},
	{
		ID: "Q31", Link: cacheSource,
		Sentence: "At 3, 5 or 6 bits and some widths the quantized cache allocates too few words a column, and its first update raises.",
		Case:     "Q31", Step: 1, Field: "offset", MLXLM: "error:raises", Exact: "error:not_supported",
	},

	// Differences from the batched rings of the system described.
	{
		ID: "D-1", Link: cacheSource,
		Sentence: "One column while padding is pending is refused, and not a block.",
		Case:     "D-1", Step: 3, Field: "returned", MLXLM: "error:pending_padding", Exact: "[[1,2,3],[11,12,-1]]",
	},
	{
		ID: "D-2", Link: cacheSource,
		Sentence: "The mask of one column is that of a decode while padding is pending.",
		Case:     "D-2", Step: 4, Field: "mask", MLXLM: `[["1100"],["1100"]]`, Exact: `[["0011"],["0011"]]`,
	},
	{
		ID: "D-3", Link: cacheSource,
		Sentence: "A window of one token is a block, where an update of one token is a decode: the same columns, in another order once the ring has wrapped.",
		Case:     "D-3", Step: 7, Field: "returned", MLXLM: "[[13,14,15,16]]", Exact: "[[13,14,15,16]]",
	},
	{
		ID: "D-4", Link: cacheSource,
		Sentence: "A filter leaves the pending ends of all rows, in the old order.",
		Case:     "D-4", Step: 4, Field: "stored", MLXLM: "[[11,12,-1,-2],[3,4,1,2]]", Exact: "[[-1,-2,11,12],[1,2,3,4]]",
	},
	{
		ID: "D-5", Link: cacheSource,
		Sentence: "An announcement without right padding leaves an earlier one pending.",
		Case:     "D-5", Step: 3, Field: "ends", MLXLM: "[3,1]", Exact: "error:pending_padding",
	},
	{
		ID: "D-6", Link: cacheSource,
		Sentence: "No flag makes a row wait for finalize that has no right padding of its own.",
		Case:     "D-6", Step: 3, Field: "ends", MLXLM: "null", Exact: "[6]",
	},
	{
		ID: "D-7", Link: cacheSource,
		Sentence: "An announcement on a batch without rows raises.",
		Case:     "D-7", Step: 1, Field: "offset", MLXLM: "error:raises", Exact: "[0,0]",
	},
	{
		ID: "D-8", Link: cacheSource,
		Sentence: "Left padding on columns is refused, by both.",
		Case:     "D-8", Step: 3, Field: "error", MLXLM: "error:left_padding_on_non_empty", Exact: "error:left_padding_on_non_empty",
	},
	{
		ID: "D-9", Link: cacheSource,
		Sentence: "Finalize raises while nothing was written.",
		Case:     "D-9", Step: 2, Field: "ends", MLXLM: "error:raises", Exact: "null",
	},
	{
		ID: "D-10", Link: cacheSource,
		Sentence: "Finalize gathers rows that do not move; the bytes are the same.",
		Case:     "D-10", Step: 3, Field: "stored", MLXLM: "[[1,2],[11,12]]", Exact: "[[1,2],[11,12]]",
	},
	{
		ID: "D-11", Link: cacheSource,
		Sentence: "There is no extract with a limit; here there is one, under either semantics.",
		Case:     "D-11", Step: 2, Field: "stored", MLXLM: "[[3,4,5,6]]", Exact: "[[3,4,5,6]]",
	},
	{
		ID: "D-12", Link: cacheSource,
		Sentence: "An extract from an empty batch raises.",
		Case:     "D-12", Step: 1, Field: "offset", MLXLM: "error:raises", Exact: "0",
	},
	{
		ID: "D-13", Link: cacheSource,
		Sentence: "There is no view in temporal order that leaves the ring as it is; here there is one, under either semantics.",
		Case:     "D-13", Step: 2, Field: "returned", MLXLM: "[[3,4,5,6]]", Exact: "[[3,4,5,6]]",
	},
	{
		ID: "D-14", Link: cacheSource,
		Sentence: "A batch says that it can be trimmed while padding is pending.",
		Case:     "D-14", Step: 2, Field: "trimmable", MLXLM: "true", Exact: "false",
	},
	{
		ID: "D-15", Link: cacheSource,
		Sentence: "A running batch is no source of a merge.",
		Case:     "D-15", Step: 4, Field: "stored", MLXLM: "error:raises", Exact: "[[3,4,5,6],[12,13,14,15],[0,0,0,21]]",
	},
	{
		ID: "D-16", Link: cacheSource,
		Sentence: "An empty ring is merged as a row of padding, by both.",
		Case:     "D-16", Step: 3, Field: "left_padding", MLXLM: "[3,0]", Exact: "[3,0]",
	},
	{
		ID: "D-17", Link: cacheSource,
		Sentence: "One query has no mask unless the window is narrower than what is held.",
		Case:     "D-17", Step: 3, Field: "mask", MLXLM: "null", Exact: `[["111111"]]`,
	},
	{
		ID: "D-18", Link: cacheSource,
		Sentence: "A window of 0 counts as none given.",
		Case:     "D-18", Step: 2, Field: "mask", MLXLM: `[["111"],["011"]]`, Exact: "error:window",
	},
	{
		ID: "D-19", Link: cacheSource,
		Sentence: "The mask of a batch is always an array, by both.",
		Case:     "D-19", Step: 3, Field: "mask", MLXLM: `[["111"],["011"]]`, Exact: `[["111"],["011"]]`,
	},
	{
		ID: "D-20", Link: cacheSource,
		Sentence: "A merge of rings of different windows is refused, by both.",
		Case:     "D-20", Step: 4, Field: "error", MLXLM: "error:max_size", Exact: "error:max_size",
	},
	{
		ID: "D-21", Link: cacheSource,
		Sentence: "A merge takes the most heads and the largest width of its sources, and fills with zeros.",
		Test:     "TestD21MergeOfShapes",
	},
	{
		ID: "D-22", Link: cacheSource,
		Sentence: "After a trim past the wrap the order of the ring goes by the flag that stayed, and the newest token is taken for the oldest.",
		Case:     "D-22", Step: 4, Field: "stored", MLXLM: "[[5,2,3,4]]", Exact: "[[2,3,4,5]]",
	},
	{
		ID: "D-23", Link: cacheSource,
		Sentence: "A trim to nothing is taken while padding is pending.",
		Case:     "D-23", Step: 3, Field: "trimmed", MLXLM: "2", Exact: "error:pending_padding",
	},
	{
		ID: "D-24", Link: cacheSource,
		Sentence: "A file forgets what is pending.",
		Case:     "D-24", Step: 4, Field: "ends", MLXLM: "null", Exact: "[3,1]",
	},
	{
		ID: "D-25", Link: cacheSource,
		Sentence: "There is no quantized batch ring, since a ring cannot be quantized.",
		Case:     "D-25", Step: 3, Field: "stored", MLXLM: "error:not_supported", Exact: "[[1,2,3,4,0,0,0,0]]",
	},
	{
		ID: "D-26", Link: "https://github.com/ml-explore/mlx-lm/issues/1736",
		Sentence: "The mask of recurrent state heeded left padding or lengths, not both. Exact has batch_recurrent in place of the class.",
		Case:     "D-26", Step: 2, Field: "mask", MLXLM: `[["0110"]]`, Exact: "error:not_supported",
		Gone: "0.32.0",
	},
	{
		ID: "D-27", Link: cacheSource,
		Sentence: "Recurrent state knows no position of a row. Exact has batch_recurrent in place of the class, which counts real tokens.",
		Case:     "D-27", Step: 2, Field: "lengths", MLXLM: "[2,6]", Exact: "error:not_supported",
	},
	{
		ID: "D-28", Link: "https://github.com/ml-explore/mlx-lm/issues/1169",
		Sentence: "A merge of recurrent caches that are all empty has left padding of zero. Exact has batch_recurrent in place of the class.",
		Case:     "D-28", Step: 2, Field: "left_padding", MLXLM: "[0,0]", Exact: "error:not_supported",
	},
	{
		ID: "D-29", Link: cacheSource,
		Sentence: "A filter takes the shared padding off a batch without a window; a ring never does. Exact has rings only.",
		Case:     "D-29", Step: 2, Field: "left_padding", MLXLM: "[1,0]", Exact: "error:not_supported",
	},
	{
		ID: "D-30", Link: "https://github.com/ml-explore/mlx-lm/issues/1631",
		Sentence: "A merge accepts rings with sinks, and forgets how many they keep.",
		Case:     "D-30", Step: 5, Field: "stored", MLXLM: "[[7,4,5,6]]", Exact: "error:keep",
	},

	// Defects of mlx-lm.
	{
		ID: "O-1", Link: cacheSource,
		Sentence: "A block's mask on a wrapped ring counts the padding to be evicted from the write position, and hides the oldest token of every row that still has left padding.",
		Case:     "O-1", Step: 5, Field: "mask", MLXLM: `[["00010","00011"],["11110","01111"]]`, Exact: `[["00110","00111"],["11110","01111"]]`,
	},
	{
		ID: "O-2", Link: cacheSource,
		Sentence: "Left padding falls below zero and swallows what finalize, rollback and extend add: an extract brings padding before the row's tokens, until the next write.",
		Case:     "O-2", Step: 6, Field: "stored", MLXLM: "[[-1,-2,13,14,15,16]]", Exact: "[[13,14,15,16]]",
	},
	{
		ID: "O-3", Link: cacheSource,
		Sentence: "A full row that gets no token in a block holds W-1 tokens afterwards and claims W: a merge takes a column of padding for the missing one.",
		Case:     "O-3", Step: 6, Field: "stored", MLXLM: "[[-2,13,14,15]]", Exact: "[[13,14,15]]",
	},
	{
		ID: "O-4", Link: "https://github.com/ml-explore/mlx-lm/issues/1250",
		Sentence: "A batch ring is loaded without its list of pending ends, so that its next write or finalize raises. (That it was loaded as rotated is gone: M23.)",
		Case:     "O-4", Step: 4, Field: "offset", MLXLM: "error:raises", Exact: "[3,2]",
	},
	{
		ID: "O-5", Link: cacheSource,
		Sentence: "A trim passes the start of a short row, whose next token is then stripped as padding.",
		Case:     "O-5", Step: 2, Field: "offset", MLXLM: "[2,-1]", Exact: "error:over_trim",
	},
	{
		ID: "O-6", Link: cacheSource,
		Sentence: "The last chunk of a padded prompt is refused where it is one column wide.",
		Case:     "O-6", Step: 4, Field: "returned", MLXLM: "error:pending_padding", Exact: "[[2,3,4,5],[-2,11,12,-3]]",
	},

	// Defects of the system described, which no implementation here has.
	{
		ID: "S-1", Link: cacheSource,
		Sentence: "A merge from a batch right after a block took the padding off twice, in the system described; here it brings every token, and mlx-lm has no such merge.",
		Case:     "S-1", Step: 2, Field: "stored", MLXLM: "error:raises", Exact: "[[3,4,5,6],[0,11,12,13]]",
	},
	{
		ID: "S-2", Link: cacheSource,
		Sentence: "A decode while padding is pending wrote among columns that were not rolled yet, in the system described; it is refused, under either semantics.",
		Case:     "S-2", Step: 3, Field: "error", MLXLM: "error:pending_padding", Exact: "error:pending_padding",
	},
	{
		ID: "S-3", Link: cacheSource,
		Sentence: "An operation that failed halfway left changes behind, in the system described; a refused merge changes no source.",
		Case:     "S-3", Step: 5, Field: "error", MLXLM: "error:raises", Exact: "error:pending_padding",
	},
	{
		ID: "S-4", Link: cacheSource,
		Sentence: "A trim while padding is pending, or after the ring has filled, went unguarded, in the system described.",
		Case:     "S-4", Step: 3, Field: "trimmed", MLXLM: "1", Exact: "error:pending_padding",
	},
	{
		ID: "S-5", Link: cacheSource,
		Sentence: "Lists of the wrong length were taken, in the system described.",
		Case:     "S-5", Step: 2, Field: "ends", MLXLM: "null", Exact: "error:rows",
	},
	{
		ID: "S-6", Link: cacheSource,
		Sentence: "Positions for a rotary embedding moved in the middle of a step, in the system described; here they stay until released, under either semantics.",
		Test:     "TestS6RowPositions",
	},
}
