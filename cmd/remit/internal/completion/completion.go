package completion

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// maxTxns bounds the transactions that completion lists: the newest.
const maxTxns = 50

var errEnough = errors.New("enough")

// Add adds shell completion. The usage line of each command names its
// arguments: TXN and CALL are IDs in the journal that its flags select.
func Add(root *cobra.Command, a *cli.App) {
	for _, cmd := range root.Commands() {
		Add(cmd, a)
		for _, dir := range []string{"workspace", "state"} {
			if cmd.Flags().Lookup(dir) != nil {
				_ = cmd.MarkFlagDirname(dir) // the flag exists
			}
		}
		for flag, values := range map[string][]string{
			"on-ask": {"deny", "wait", "prompt", "approve-unsafe"}, "at-end": {"commit", "revert", "leave-open"},
			"outcome": {"done", "held", "pending", "invalid", "denied", "failed", "verify_failed", "cancelled", "timeout", "unknown", "dropped", "in_flight"},
		} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = completeWords(a, cmd)
		}
	}
}

// completeWords completes the arguments of a command.
func completeWords(a *cli.App, cmd *cobra.Command) cobra.CompletionFunc {
	_, usage, _ := strings.Cut(cmd.Use, " ")
	txns, calls := strings.Contains(usage, "TXN"), strings.Contains(usage, "CALL")
	switch {
	case txns || calls:
		return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return rest(usage, len(args)), cobra.ShellCompDirectiveNoFileComp
			}
			return completeIDs(a, cmd, txns, calls, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
	case strings.Contains(usage, "NAME"):
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			tools, err := tool.NewRegistry(state.Tools(a)...)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return tools.Names(), cobra.ShellCompDirectiveNoFileComp
		}
	case strings.Contains(usage, "SCRIPT.jsonl"):
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		}
	case strings.Contains(usage, "PATH"):
		return nil // the shell completes files and folders itself
	default:
		return cobra.NoFileCompletions
	}
}

// rest returns the words that can follow an ID: those in lower case in the
// usage line.
func rest(usage string, n int) []cobra.Completion {
	places := strings.Fields(usage)
	if n >= len(places) || strings.ToLower(places[n]) != places[n] || !strings.Contains(places[n], "|") {
		return nil
	}
	return strings.Split(places[n], "|")
}

// completeIDs lists the IDs of the journal, the newest first. It returns none for an
// unreadable journal, as completion must not report errors.
func completeIDs(a *cli.App, cmd *cobra.Command, txns, calls bool, begun string) (list []cobra.Completion) {
	p := state.Workspace{Dir: FlagText(cmd, "workspace"), StateDir: FlagText(cmd, "state"), Journal: FlagText(cmd, "journal"), ForCompletion: true}
	j, err := p.Read(cmd.Context(), a)
	if err != nil {
		return nil
	}
	defer func() { _ = j.Close() }()
	n := 0
	_ = state.EachTxn(cmd.Context(), j, func(id string) error {
		t, err := revert.Load(cmd.Context(), j, id)
		if n++; err != nil || n > maxTxns {
			return errors.Join(err, errEnough)
		}
		if txns {
			list = append(list, cobra.CompletionWithDesc(id, string(t.State())))
		}
		for _, c := range slices.Backward(t.Calls) {
			if calls {
				list = append(list, cobra.CompletionWithDesc(c.Ref.Call, c.Tool.Name))
			}
		}
		return nil
	})
	return slices.DeleteFunc(list, func(c cobra.Completion) bool { return !strings.HasPrefix(c, begun) })
}

// FlagText returns the value of a folder's flag.
func FlagText(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() != "" {
		return filepath.Clean(f.Value.String())
	}
	return ""
}
