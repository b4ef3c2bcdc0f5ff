package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policy"
	"github.com/remit-dev/remit/cmd/remit/internal/script"
	"github.com/remit-dev/remit/perm"
)

// full takes some bytes, then no more.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no space left on device")}
	}
	f.left -= len(p)
	return len(p), nil
}

// TestAnswersNotWritten: answers that nobody can read are no success, of any
// verb; what was asked for is done all the same.
func TestAnswersNotWritten(t *testing.T) {
	workspace, state := testPlace(t)
	text := filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(text, []byte(
		`{"tool":"file_list","args":{}}`+"\n"+`{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n"), 0o600))
	input := filepath.Join(t.TempDir(), "input.json")
	require.NoError(t, os.WriteFile(input, []byte(shownInput(t)), 0o600))
	var ids bytes.Buffer
	at := []string{"--workspace", workspace, "--state", state}
	require.Zero(t, run(t.Context(), append([]string{"run", "--json", text}, at...), testEnv(nil, &ids, io.Discard)))
	var first script.Answer
	require.NoError(t, json.NewDecoder(&ids).Decode(&first))
	policy := "../../policies/workspace"
	for _, args := range [][]string{
		append([]string{"run", text}, at...),
		append([]string{"log"}, at...),
		append([]string{"show", first.Call}, at...),
		append([]string{"recover"}, at...),
		append([]string{"revert", first.Txn}, at...),
		append([]string{"redo", first.Txn}, at...),
		{"tools"},
		{"version"},
		append([]string{"doctor"}, at...),
		{"policy", "check", policy},
		{"policy", "eval", "--input", input, policy},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			for _, room := range []int{0, 10} {
				var errs bytes.Buffer
				code := run(t.Context(), append(args, more...), testEnv(nil, &full{room}, &errs))
				require.Equal(t, int(cli.ExitInternal), code, "%q %q", args, more)
				require.Contains(t, errs.String(), "not everything could be written to standard output", "%q", args)
				require.Contains(t, errs.String(), "no space left on device")
			}
		}
		_, err := os.Stat(filepath.Join(workspace, "a.txt"))
		require.Equal(t, args[0] == "revert", errors.Is(err, os.ErrNotExist), "%q", args)
	}
	for _, args := range [][]string{{"--help"}, {"--version"}, {"policy", "schema"}} {
		require.Equal(t, int(cli.ExitInternal), run(t.Context(), args, testEnv(nil, &full{}, io.Discard)), "%q", args)
	}
}

// leaves is a reader that goes once it has begun, as head does.
type leaves struct{}

func (leaves) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// TestWhoReadsHasEnough: nothing is said to who looks at the beginning of a list. Who changes something is told.
func TestWhoReadsHasEnough(t *testing.T) {
	workspace, state := testPlace(t)
	script := filepath.Join(t.TempDir(), "script.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n"), 0o600))
	at := []string{"--workspace", workspace, "--state", state}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{append([]string{"run", script}, at...), "nothing was stopped by it"},
		{append([]string{"log"}, at...), ""},
		{append([]string{"doctor"}, at...), ""},
		{[]string{"tools"}, ""},
		{append([]string{"fsck"}, at...), "not everything could be written"},
		{append([]string{"revert", "--last"}, at...), "nothing was stopped by it"},
	} {
		var errs bytes.Buffer
		require.Equal(t, int(cli.ExitInternal), run(t.Context(), tt.args, testEnv(nil, leaves{}, &errs)), "%q", tt.args)
		require.Contains(t, errs.String(), tt.says)
		require.Equal(t, tt.says == "", errs.Len() == 0, "%q: %s", tt.args, errs.String())
	}
}

// TestHelpLeadsToExitCodes holds of every command.
func TestHelpLeadsToExitCodes(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		require.Contains(t, cmd.UsageString(), "docs/reference/outcomes.md", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard))))
}

// shownInput is the document that the help of policy eval shows.
func shownInput(t *testing.T) string {
	t.Helper()
	_, text, found := strings.Cut(policy.SampleInput, "<<'END'\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "END")
	require.True(t, found)
	return text
}

func TestSampleInput(t *testing.T) {
	var help, out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"policy", "eval", "--help"}, testEnv(nil, &help, io.Discard)))
	require.Contains(t, help.String(), policy.SampleInput)
	code := run(t.Context(), []string{"policy", "eval", "--input", "-"}, testEnv(strings.NewReader(shownInput(t)), &out, &errs))
	require.Zero(t, code, errs.String())
	require.Contains(t, out.String(), "allow")

	// It is whole: not only what eval asks for is there.
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(perm.InputSchema()))
	require.NoError(t, err)
	require.NoError(t, c.AddResource("input.json", doc))
	whole, err := c.Compile("input.json")
	require.NoError(t, err)
	in, err := jsonschema.UnmarshalJSON(strings.NewReader(shownInput(t)))
	require.NoError(t, err)
	require.NoError(t, whole.Validate(in))
}
