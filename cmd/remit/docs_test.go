package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// table returns the rows below a heading of docs/reference/outcomes.md, by first cell.
func table(t *testing.T, heading string) (order []string, rows map[string][]string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/outcomes.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(data), "# "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	rows = map[string][]string{}
	for _, l := range strings.Split(section, "\n") {
		cells := strings.Split(strings.Trim(l, "| "), " | ")
		name := strings.Trim(cells[0], "`")
		if !strings.HasPrefix(l, "| ") || name == "---" || !strings.Contains(cells[0], "`") && !regexp.MustCompile(`^\d$`).MatchString(name) {
			continue
		}
		order, rows[name] = append(order, name), cells
	}
	return order, rows
}

func TestOutcomesTable(t *testing.T) {
	order, rows := table(t, "Outcomes and exit codes")
	var want []string
	for _, s := range tool.Statuses() {
		want = append(want, string(s))
		row := rows[string(s)]
		require.GreaterOrEqual(t, len(row), 4, "%s: %q", s, row)
		require.Equal(t, strconv.Itoa(tool.Outcome{Status: s, Reverted: "all"}.ExitCode()), row[2], "exit code of %s", s)
		require.Equal(t, map[bool]string{false: "yes", true: "no"}[s.OK()], row[3], "isError of %s", s)
	}
	require.Equal(t, want, order)
}

func TestExitCodesTable(t *testing.T) {
	order, _ := table(t, "Exit codes of the command")
	codes := map[string]bool{"0": true}
	for _, c := range cli.Severity() {
		codes[strconv.Itoa(int(c))] = true
	}
	require.Len(t, order, len(codes))
	for _, c := range order {
		require.True(t, codes[c], c)
	}
	for _, s := range tool.Statuses() {
		require.True(t, codes[strconv.Itoa(tool.Outcome{Status: s, Reverted: "all"}.ExitCode())], "%s ends with a code that is not in the table", s)
	}
	data, err := os.ReadFile("../../docs/reference/outcomes.md")
	require.NoError(t, err)
	var texts []string
	for _, c := range cli.Severity() {
		texts = append(texts, strconv.Itoa(int(c)))
	}
	require.Contains(t, string(data), "in the order "+strings.Join(texts, ", ")+".")
}

func TestStatesTables(t *testing.T) {
	order, _ := table(t, "Transactions")
	require.Equal(t, []string{
		string(revert.TxnOpen), string(revert.TxnCommitted), string(revert.TxnReverted), string(revert.TxnRevertedPartial),
	}, order)
	order, _ = table(t, "Reverted resources")
	require.Equal(t, []string{
		string(effect.Restored), string(effect.Merged), string(effect.Already), string(effect.Conflict), string(effect.Failed), string(effect.Unknown),
	}, order)
}
