package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// holdPart compares the part of a reference page between its two comments with
// the text that the code gives. With -update it writes the text into the page.
func holdPart(t *testing.T, page, name, text string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "reference", page)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := fmt.Sprintf("<!-- generated from the code: %s -->\n", name), "<!-- end of generated text -->"
	before, rest, found := strings.Cut(string(data), begin)
	require.True(t, found, "%s has no line %q", page, begin)
	have, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s: the generated text %q has no end", page, name)
	text = "\n" + strings.TrimSpace(text) + "\n\n"
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+text+end+after), 0o600))
		return
	}
	require.Equal(t, text, have, "docs/reference/%s differs from the code; `make docs` writes it", page)
}

// row returns a row of a table.
func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return strings.TrimRight("| "+strings.Join(cells, " | "), " ") + " |\n"
}

// header returns the first two lines of a table.
func header(names ...string) string {
	return row(names...) + row(slices.Repeat([]string{"---"}, len(names))...)
}

// cell returns a text for a page: without line breaks, with links to pages and
// with flags as code.
func cell(text string) string {
	text = longFlag.ReplaceAllString(strings.Join(strings.Fields(text), " "), "`$0`")
	return docPath.ReplaceAllString(text, "[$1](../$1)")
}

var (
	docPath  = regexp.MustCompile(`docs/((?:guides|reference|explanation)/[a-z-]+\.md)`)
	longFlag = regexp.MustCompile(`--[a-z][a-z-]+`)
)

// code returns a text as code, and the empty text as it is.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// TestReferenceCommands holds the list of verbs and flags in flags.md.
func TestReferenceCommands(t *testing.T) {
	var verbs []*cobra.Command
	users := map[string]map[string]int{} // by flag and row: the number of verbs
	visitVerbs(commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard))), func(cmd *cobra.Command) {
		verbs = append(verbs, cmd)
		for _, f := range flagsOf(cmd) {
			if users[f.Name] == nil {
				users[f.Name] = map[string]int{}
			}
			users[f.Name][flagRow(f)]++
		}
	})
	shared := map[string]string{} // by flag: the row of most verbs, if there are several
	for name, rows := range users {
		for line, n := range rows {
			if most := rows[shared[name]]; n >= 3 && (n > most || n == most && line < shared[name]) {
				shared[name] = line
			}
		}
	}
	var b strings.Builder
	b.WriteString("## Flags of several verbs\n\n" + header("flag", "default", "meaning"))
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		b.WriteString(shared[name])
	}
	b.WriteString("\n## Verbs\n")
	for _, cmd := range verbs {
		b.WriteString("\n" + verbText(t, cmd, shared))
	}
	holdPart(t, "flags.md", "verbs and flags", b.String())
}

// visitVerbs visits each verb that does something, in the order of their names.
func visitVerbs(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "completion" && sub.Name() != "help" {
			visit(sub)
			visitVerbs(sub, visit)
		}
	}
}

// verbText describes a verb and its flags. It only names the shared flags.
func verbText(t *testing.T, cmd *cobra.Command, shared map[string]string) string {
	t.Helper()
	require.NotEmpty(t, cmd.Short, cmd.CommandPath())
	var names []string
	rows := ""
	for _, f := range flagsOf(cmd) {
		require.NotEmpty(t, f.Usage, "%s --%s", cmd.CommandPath(), f.Name)
		if line := flagRow(f); line == shared[f.Name] {
			names = append(names, code("--"+f.Name))
		} else {
			rows += line
		}
	}
	synopsis := strings.ReplaceAll(cmd.UseLine(), " [flags]", "")
	text := fmt.Sprintf("### %s\n\n%s: %s.\n", cmd.CommandPath(), cell(cmd.Short), code(synopsis))
	if len(names) > 0 {
		text += "[Shared flags](#flags-of-several-verbs): " + strings.Join(names, ", ") + ".\n"
	}
	if rows != "" {
		text += "\n" + header("flag", "default", "meaning") + rows
	}
	return text
}

func flagsOf(cmd *cobra.Command) (flags []*pflag.Flag) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			flags = append(flags, f)
		}
	})
	return flags
}

var statedDefault = regexp.MustCompile(` \(default: ([^()]+)\)`)

// flagRow returns the row of a flag. The help of a flag states a default that
// is not its value.
func flagRow(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	if f.Value.Type() == "bool" {
		name = ""
	}
	usage, preset := f.Usage, code(plainDefault(f.DefValue))
	if m := statedDefault.FindStringSubmatch(usage); m != nil {
		usage, preset = strings.Replace(usage, m[0], "", 1), m[1]
	}
	if strings.HasSuffix(f.Value.Type(), "Array") {
		usage += ". Repeatable"
	}
	flag := strings.TrimSpace("--" + f.Name + " " + name)
	if f.Shorthand != "" {
		flag = "-" + f.Shorthand + ", " + flag
	}
	return row(code(flag), preset, cell(usage))
}

// plainDefault returns a default as text, and "" for a zero value.
func plainDefault(value string) string {
	switch value {
	case "false", "0", "0s", "[]":
		return ""
	case "true":
		return "on"
	}
	if short, isTime := strings.CutSuffix(value, "m0s"); isTime {
		return strings.TrimSuffix(short+"m", "h0m") + map[bool]string{true: "h"}[strings.HasSuffix(short, "h0")]
	}
	return value
}

// TestReferenceMap checks that the short list in cli.md has every verb. Another
// test runs its lines, so that it has no other verb.
func TestReferenceMap(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	require.NoError(t, err)
	for _, cmd := range commandTree(cli.NewApp(testEnv(nil, io.Discard, io.Discard))).Commands() {
		if !cmd.Hidden {
			require.Regexp(t, `(?m)^remit ([a-z]+ \| )?`+cmd.Name()+`\b`, string(data))
		}
	}
}
