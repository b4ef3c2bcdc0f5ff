package doctor

import (
	"fmt"
	"io"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// Health is the state of one checked thing.
type Health string

// The healths.
const (
	Healthy Health = "ok"
	Weaker  Health = "weaker" // works, with a weaker guarantee
	Failing Health = "failed" // remit cannot work
)

// Finding is the result of one check.
type Finding struct {
	Where string `json:"where"` // system, root NAME, state, journal, policy, agents
	Check string `json:"check"`
	Is    Health `json:"is"`
	What  string `json:"what"`
	Fix   string `json:"fix,omitempty"` // set unless the health is ok
}

// Diagnosis holds the findings and their summary.
type Diagnosis struct {
	Checks int `json:"checks"`
	Weaker int `json:"weaker"`
	Failed int `json:"failed"`
}

func writeFinding(p cli.Style, w io.Writer, f Finding) {
	mark := p.Good("✓")
	switch f.Is {
	case Healthy:
	case Weaker:
		mark = p.Doubt("·")
	default:
		mark = p.Bad("✗")
	}
	_, _ = fmt.Fprintf(w, "%s %-15s %-10s %s\n", mark, cli.Printable(f.Where), f.Check, cli.Printable(f.What))
	p.Details(w, &cli.Problem{Fix: f.Fix})
}
