package process

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCaptureKeepsBothEnds checks that the first and the last half are kept,
// and the rest is counted, for any split of a stream.
func TestCaptureKeepsBothEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // to be had again
	for range 500 {
		c := capture{most: 1 + r.IntN(20)}
		var all []byte
		for range r.IntN(12) {
			p := make([]byte, r.IntN(3*c.most))
			for i := range p {
				p[i] = byte('a' + len(all)%26)
				all = append(all, p[i])
			}
			c.add(p)
		}
		want := all
		if len(all) > c.most {
			want = append(bytes.Clone(all[:c.most/2]), all[len(all)-(c.most-c.most/2):]...)
		}
		require.Equal(t, string(want), string(c.bytes()))
		require.EqualValues(t, len(all)-len(want), c.dropped)
	}
}
