// Package randtext makes random texts, and random edits of them, for tests of
// merges.
package randtext

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Edits are three versions of one file: an agent changes Before to Left, and a
// person then changes Left to Now.
type Edits struct{ Before, Left, Now string }

// New returns the edits of a seed. Some texts have many equal lines, some have
// none. Lines end with CRLF, or have bytes that are no UTF-8. The last one can
// have no end.
func New(seed uint64) Edits {
	g := &generator{rnd: rand.New(rand.NewPCG(seed, 1)), end: "\n"}
	g.kinds = 1 + g.rnd.IntN(400)
	if g.rnd.IntN(5) == 0 {
		g.end = "\r\n"
	}
	before := g.lines(g.rnd.IntN(60))
	left := g.edit(before)
	now := g.edit(left)
	return Edits{Before: g.text(before), Left: g.text(left), Now: g.text(now)}
}

type generator struct {
	rnd   *rand.Rand
	kinds int // number of different lines
	end   string
}

func (g *generator) lines(n int) (all []string) {
	for range n {
		all = append(all, g.line())
	}
	return all
}

func (g *generator) line() string {
	common := []string{"", "}", "\treturn nil", "\t}", "end", "\xff\xfe", "<<<<<<< ours", "=======", ">>>>>>> theirs"}
	if n := g.rnd.IntN(g.kinds); n >= len(common) {
		return fmt.Sprintf("line %d", n)
	} else {
		return common[n]
	}
}

// edit replaces up to four stretches of lines.
func (g *generator) edit(lines []string) []string {
	out := append([]string{}, lines...)
	for range g.rnd.IntN(4) + g.rnd.IntN(2) {
		at := g.rnd.IntN(len(out) + 1)
		gone := g.rnd.IntN(min(4, len(out)-at+1))
		rest := append([]string{}, out[at+gone:]...)
		out = append(append(out[:at], g.lines(g.rnd.IntN(4))...), rest...)
	}
	return out
}

func (g *generator) text(lines []string) string {
	text := strings.Join(lines, g.end)
	if len(lines) > 0 && g.rnd.IntN(8) > 0 {
		text += g.end
	}
	return text
}
