package state

import (
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
)

// RequestHint returns the command that asks for the same as a request, and so
// shows its report. me is the user of this command.
func (p *Workspace) RequestHint(q revert.Request, me string, flags ...string) string {
	words := []string{q.Verb(), word(q.Target)}
	for _, r := range q.Resources {
		words = append(words, "--file", word(r))
	}
	for _, f := range []struct {
		set  bool
		flag string
	}{{q.Cascade, "--cascade"}, {q.Force, "--force"}, {q.NoMerge, "--no-merge"}} {
		if f.set {
			words = append(words, f.flag)
		}
	}
	if q.By != "" && q.By != me && !q.Redo {
		words = append(words, "--by", word(q.By))
	}
	return p.Hint(append(words, flags...)...)
}

// WithdrawHint returns the command that withdraws a request.
func (p *Workspace) WithdrawHint(q revert.Request) string {
	return p.Hint(q.Verb(), word(q.Target), "--withdraw")
}

// word is a word of a request in a command for a shell: another node wrote it.
func word(text string) string { return cli.Quote(cli.Printable(text)) }
