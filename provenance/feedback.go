package provenance

import (
	"fmt"
	"slices"
)

// Rating is a judgment of one call. The zero Rating is none.
type Rating string

// The ratings.
const (
	Good   Rating = "good"   // the call did what was wanted
	Bad    Rating = "bad"    // it was useless
	Wrong  Rating = "wrong"  // its result or effect is incorrect
	Unsafe Rating = "unsafe" // it did harm, or could have
)

// Ratings returns every rating.
func Ratings() []Rating { return []Rating{Good, Bad, Wrong, Unsafe} }

// Check returns an error for an unknown rating.
func (r Rating) Check() error {
	if !slices.Contains(Ratings(), r) {
		return fmt.Errorf("%q is no rating; valid are good, bad, wrong, unsafe", string(r))
	}
	return nil
}

// Feedback is a judgment of one call, and so of the declaration of its tool.
// Another digest is another declaration, to which it does not apply. It changes
// no grade, no approval and no authority.
type Feedback struct {
	Tool    string `json:"tool"`
	Digest  string `json:"digest,omitempty"` // digest of the declaration; empty if the call named no existing tool
	Call    string `json:"call"`
	Verdict Rating `json:"verdict"`
	Note    string `json:"note,omitempty"`
	By      string `json:"by"`
	BySelf  bool   `json:"own,omitempty"` // given by the principal that made the call
}
