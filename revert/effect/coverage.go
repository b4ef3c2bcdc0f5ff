package effect

// Coverage says how much of what a call does is known. The zero Coverage counts as Declared.
type Coverage string

// The coverages, from the one that knows most.
const (
	Confined Coverage = "confined" // handles or a sandbox bound the call: every effect of it is known
	Observed Coverage = "observed" // its roots were compared before and after the call: other effects are unknown
	Declared Coverage = "declared" // the word of the tool, or of its entry
)

// Valid reports whether c is one of the coverages; the empty coverage is not.
func (c Coverage) Valid() bool { return c == Confined || c == Observed || c == Declared }
