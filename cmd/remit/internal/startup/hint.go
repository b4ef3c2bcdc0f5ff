package startup

import (
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/policies"
)

// ResumeHint returns the command that resumes a call, with the same policy.
func (f *Flags) ResumeHint(call string) string {
	words := []string{"resume", call}
	for _, path := range f.Policies {
		words = append(words, "--policy", cli.Quote(path))
	}
	return f.Hint(words...)
}

// CommitHint returns the command that commits an open transaction, with the same
// policy for the accesses of released calls.
func (f *Flags) CommitHint(txn string) string { return f.ResumeHint(txn) + " --at-end commit" }

// approveHint returns the command that approves a call of a run, resumes it and
// ends its transaction.
func (f *Flags) approveHint(call string) string {
	words := []string{"approve", call, "--resume"}
	for _, path := range f.Policies {
		words = append(words, "--policy", cli.Quote(path))
	}
	return f.Hint(words...)
}

// anywhere returns the same run with flags that work in any folder.
func (f *Flags) anywhere() *Flags {
	out := *f
	out.HintFlags, out.Policies = append([]string{"--state", absolute(f.StateDir)}, f.JournalFlags()...), nil
	for _, path := range f.Policies {
		if !strings.HasPrefix(path, policies.Prefix) {
			path = absolute(path)
		}
		out.Policies = append(out.Policies, path)
	}
	return &out
}

func absolute(path string) string {
	if dir, err := filepath.Abs(path); err == nil {
		return dir
	}
	return path
}
