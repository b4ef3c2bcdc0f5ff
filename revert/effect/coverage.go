package effect

// Coverage says how much of a call's effect is known. The zero Coverage counts
// as Declared.
type Coverage string

// The coverages, from complete to least knowledge.
const (
	Confined Coverage = "confined" // handles or a sandbox bound the call: every effect is known
	Observed Coverage = "observed" // the runtime compared its roots before and after the call: other effects are unknown
	Declared Coverage = "declared" // only the tool, or its entry, declares the effects
)

// Valid reports whether c is one of the coverages; the empty coverage is not.
func (c Coverage) Valid() bool { return c == Confined || c == Observed || c == Declared }
