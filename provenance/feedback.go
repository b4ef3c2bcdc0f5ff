package provenance

import (
	"fmt"
	"slices"
)

// Rating is what somebody thinks of one call. The zero Rating is none.
type Rating string

// The ratings.
const (
	Good   Rating = "good"   // it did what was wanted
	Bad    Rating = "bad"    // it was of no use
	Wrong  Rating = "wrong"  // what it returned or did is not right
	Unsafe Rating = "unsafe" // it did harm, or could have
)

// Ratings lists every rating.
func Ratings() []Rating { return []Rating{Good, Bad, Wrong, Unsafe} }

// Check refuses what is no rating.
func (r Rating) Check() error {
	if !slices.Contains(Ratings(), r) {
		return fmt.Errorf("%q is no rating; valid are good, bad, wrong, unsafe", string(r))
	}
	return nil
}

// Feedback is what somebody says of one call, and so of the declaration that made
// it: another digest is another declaration, which has earned none of it. It changes
// no grade, no approval and no right.
type Feedback struct {
	Tool    string `json:"tool"`
	Digest  string `json:"digest,omitempty"` // of the declaration; empty where the call named no tool that there is
	Call    string `json:"call"`
	Verdict Rating `json:"verdict"`
	Note    string `json:"note,omitempty"`
	By      string `json:"by"`
	BySelf  bool   `json:"own,omitempty"` // who says it asked for the call
}
