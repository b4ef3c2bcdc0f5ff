package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

func TestHelpGroups(t *testing.T) {
	root := commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard)))
	for _, c := range root.Commands() {
		if !c.Hidden && !slices.Contains([]string{"version", "help", "completion"}, c.Name()) {
			require.NotEmpty(t, c.GroupID, "%s is in no group of the help", c.Name())
		}
	}
	for _, g := range helpGroups() {
		for _, verb := range g.verbs {
			c, _, err := root.Find([]string{verb})
			require.NoError(t, err, verb)
			require.Equal(t, g.id, c.GroupID, verb)
		}
	}
}

// TestHelpExamples checks that the verbs and the flags of each example exist.
func TestHelpExamples(t *testing.T) {
	for _, of := range helpExamples() {
		verb := of.verb
		for line := range strings.Lines(of.Example) {
			_, command, found := strings.Cut("| "+line, "remit ")
			require.True(t, found, line)
			command, _, _ = strings.Cut(command, " | ")
			command, _, _ = strings.Cut(command, " -- ")
			root := commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard)))
			c, rest, err := root.Find(strings.Fields(command))
			require.NoError(t, err, line)
			require.NoError(t, c.ParseFlags(rest), line)
			if verb != "revert" || c.Name() != "undo" {
				require.True(t, strings.HasSuffix(c.CommandPath(), verb), "%s is an example of %s", line, verb)
			}
		}
	}
}
