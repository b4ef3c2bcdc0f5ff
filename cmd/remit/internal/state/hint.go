package state

import (
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm/process"
)

// Hint returns a command with the flags that select the same journal.
func (p *Workspace) Hint(args ...string) string {
	words := append([]string{"remit"}, args...)
	given := p.HintFlags
	if len(args) > 0 && (slices.Contains([]string{"revert", "redo", "diff", "recover"}, args[0]) || resumes(args)) { // these need the roots and services of the run
		for _, r := range p.Moved {
			given = append(slices.Clip(given), "--root", r)
		}
		given = slices.Concat(given, p.Services.flags())
	}
	if len(args) > 0 && (args[0] == "show" || resumes(args)) {
		given = slices.Concat(given, p.Declared.flags())
	}
	if resumes(args) { // other commands find databases in the journal, and run no program
		given = slices.Concat(given, p.DatabaseFlags())
		if p.Sandbox != "" && p.Sandbox != string(process.Strict) {
			given = append(given, "--sandbox", p.Sandbox)
		}
		if p.ProgramNetwork {
			given = append(given, "--program-network")
		}
	}
	for _, w := range given {
		words = append(words, cli.Quote(w))
	}
	return strings.Join(words, " ")
}

// ShowArguments returns the arguments of remit show for an ID in the same
// journal.
func (p *Workspace) ShowArguments(id string) string {
	return strings.TrimPrefix(p.Hint("show", id), "remit show ")
}

// resumes reports whether a command resumes a call.
func resumes(args []string) bool {
	return len(args) > 0 && (args[0] == "resume" || slices.Contains(args, "--resume"))
}
