package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/tool"
)

func policyCheckCommand(a *cli.App) *cobra.Command {
	var f policyCheckFlags
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Load a policy and run its own tests",
		Long: "Loads the policy of the given files, folders and packs (builtin:PACK). It says what is wrong with the policy and where, warns of\n" +
			"rules that are not what their author means, and runs its *_test.rego. What could not be checked and what makes decisions slow is\n" +
			"summed up in one line; --notes lists it.\n\n" +
			"Rules are held against the tools that remit has. With --tools, there are no others than these and those of --definitions: each\n" +
			"other name of a tool is a warning. Exit codes: 0 it is good; 2 usage, or a file that cannot be read; 5 it is not good, or with\n" +
			"--strict, there is a warning.",
		Args: func(_ *cobra.Command, paths []string) error {
			if len(paths) > 0 {
				return nil
			}
			e := cli.UsageProblem("there is no policy to check")
			e.Fix = "name its files or folders: remit policy check policy.rego"
			return e
		},
		RunE: func(cmd *cobra.Command, paths []string) error { return runCheck(a, cmd, paths, f) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit with 5 if there is a warning")
	cmd.Flags().BoolVar(&f.notes, "notes", false, "list what could not be checked and what makes decisions slow (default: how much of it there is)")
	cmd.Flags().BoolVar(&f.tools, "tools", false, "warn of each tool that is not there")
	definitionsFlag(cmd, &f.definitions)
	return cmd
}

// policyCheckFlags is what remit policy check is told.
type policyCheckFlags struct {
	json, strict, tools, notes bool
	definitions                []string
}

// checkOutput is what checking a policy came to.
type checkOutput struct {
	OK        bool                `json:"ok"`
	Revision  string              `json:"revision"`
	Problems  []rego.Problem      `json:"problems"`
	Warnings  []rego.Problem      `json:"warnings"` // rules that are not what their author means
	Unchecked []rego.UncheckedRef `json:"unchecked"`
	Slow      []rego.UncheckedRef `json:"slow"` // what makes decisions slower than they could be
	Tests     []rego.TestResult   `json:"tests"`
	Uncovered []string            `json:"uncovered"`
}

func runCheck(a *cli.App, cmd *cobra.Command, paths []string, f policyCheckFlags) error {
	tools, err := definedTools(a, f.definitions, nil)
	if err != nil {
		return err
	}
	c, err := check(cmd, paths, tools.All(), f.tools)
	if err != nil {
		return err
	}
	if !c.OK || f.strict && len(c.Warnings) > 0 {
		a.ExitWith(cli.ExitFailed)
	}
	if f.json {
		a.WriteJSON(c)
		return nil
	}
	writeCheck(a.Style(), a.Out, c, f.notes)
	return nil
}

// check tells what is wrong with a policy apart from why it could not be
// looked at.
func check(cmd *cobra.Command, paths []string, tools []tool.Tool, closed bool) (checkOutput, error) {
	c := checkOutput{Problems: []rego.Problem{}, Warnings: []rego.Problem{}, Unchecked: []rego.UncheckedRef{}, Slow: []rego.UncheckedRef{}, Tests: []rego.TestResult{}, Uncovered: []string{}}
	engine, err := loadPolicy(paths, true)
	var report rego.TestReport
	if err == nil {
		c.Revision, c.Unchecked, c.Slow = engine.Revision(), cli.Listed(engine.UncheckedRefs()), cli.Listed(engine.SlowRules())
		c.Warnings = cli.Listed(engine.WarningsFor(policyTools(tools), closed))
		report, err = engine.Test(cmd.Context())
	}
	var bad *rego.LoadError
	if errors.As(err, &bad) {
		c.Problems = cli.Listed(bad.Problems)
		return c, nil
	}
	c.Tests, c.Uncovered = cli.Listed(report.Results), cli.Listed(report.Uncovered)
	c.OK = len(report.Failed()) == 0
	return c, err
}

// loadPolicy makes an engine of files and folders; none is the workspace
// policy. Modules have the names that they were given by, so that a reason
// leads to its line.
func loadPolicy(paths []string, tests bool) (*rego.Engine, error) {
	if len(paths) == 0 {
		return rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix})
	}
	var all policyFiles
	for _, path := range paths {
		if pack, builtin := strings.CutPrefix(path, policies.Prefix); builtin {
			if err := all.addPack(pack, len(paths) > 1 || !tests); err != nil {
				return nil, err
			}
			continue
		}
		if err := all.add(path, tests); err != nil {
			return nil, &cli.Problem{
				Code: cli.ExitUsage, What: fmt.Sprintf("the policy %q cannot be read", path), Why: cli.PlainError(err),
				Fix: "name a .rego file, a folder of them, or a pack: " + packList(),
			}
		}
	}
	e, err := rego.New(rego.Options{Sources: all.sources})
	return e, all.unread(err)
}

// policyFiles are the files that a command line names, each once, as sources: a
// folder is the root of what is below it, so that the revision is the same
// whatever path leads there.
type policyFiles struct {
	sources []rego.Source
	names   map[string]bool
	ignored []string // that look like data
}

// unread says of a policy that names data which nothing defines which files of its
// folders look like data and are none.
func (p *policyFiles) unread(err error) error {
	var bad *rego.LoadError
	if !errors.As(err, &bad) || len(p.ignored) == 0 {
		return err
	}
	for i := range bad.Problems {
		if strings.Contains(bad.Problems[i].Text, "no data file defines") {
			bad.Problems[i].Fix += "; not read: " + strings.Join(p.ignored, ", ")
		}
	}
	return err
}

// addPack adds a pack that comes with remit. Its tests hold for the pack alone:
// beside other rules they are left out.
func (p *policyFiles) addPack(name string, noTests bool) error {
	pack, err := packOf(name)
	if err == nil {
		p.sources = append(p.sources, rego.Source{FS: pack, Prefix: policies.Prefix, NoTests: noTests})
	}
	return err
}

func (p *policyFiles) add(path string, tests bool) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return p.addFolder(path)
	}
	dir, files := filepath.Dir(path), []string{filepath.Base(path)}
	if stem := strings.TrimSuffix(path, ".rego"); tests && stem != path && !strings.HasSuffix(path, "_test.rego") {
		if _, err := os.Stat(stem + "_test.rego"); err == nil {
			files = append(files, filepath.Base(stem)+"_test.rego")
		}
	}
	if f, err := os.Open(path); err != nil { // fs.Glob would say only that nothing is there
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "data.json")); err == nil {
		p.ignored = append(p.ignored, filepath.ToSlash(filepath.Join(dir, "data.json"))+" (name the folder, or that file too)")
	}
	p.put(dir, files)
	return nil
}

// addFolder adds what lies below a folder. One without a policy is refused: a
// misspelt path would else be a policy that lacks half of its rules.
func (p *policyFiles) addFolder(dir string) error {
	var files []string
	rules := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path.Ext(name) == ".rego" {
			rules++
		}
		if !isPolicyFile(name) {
			if ext := path.Ext(name); ext == ".json" || ext == ".yaml" || ext == ".yml" {
				p.ignored = append(p.ignored, filepath.ToSlash(filepath.Join(dir, name)))
			}
			return nil
		}
		files = append(files, name)
		return nil
	})
	if err == nil && rules == 0 {
		return errors.New("no .rego file is in that folder")
	}
	p.put(dir, files)
	return err
}

// isPolicyFile reports whether a folder of policies has a name as a rule or as data.
func isPolicyFile(name string) bool {
	return path.Ext(name) == ".rego" || path.Base(name) == "data.json"
}

// put makes a source of the files of a folder that no other source has.
func (p *policyFiles) put(dir string, files []string) {
	prefix := filepath.ToSlash(dir) + "/"
	if dir == "." {
		prefix = ""
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	s := rego.Source{FS: os.DirFS(dir), Prefix: strings.Replace(prefix, "//", "/", 1)}
	for _, name := range files {
		if whole := prefix + name; !p.names[whole] {
			p.names[whole] = true
			s.Globs = append(s.Globs, literalGlob.Replace(name))
		}
	}
	if len(s.Globs) > 0 {
		p.sources = append(p.sources, s)
	}
}

// literalGlob makes a glob that matches a name and no other.
var literalGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// packOf finds a pack by its name.
func packOf(name string) (fs.FS, error) {
	pack, ok := policies.Pack(name)
	if ok {
		return pack, nil
	}
	fix := "the packs are " + packList()
	if near := suggest.Name(name, policies.Names()); near != "" {
		fix = "did you mean " + policies.Prefix + near + "? " + fix
	}
	return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("policy pack %q: there is none of this name", name), Fix: fix}
}

func packList() string {
	names := policies.Names()
	for i, name := range names {
		names[i] = policies.Prefix + name
	}
	return strings.Join(names, ", ")
}

// mostWarnings is how many warnings of a policy a start shows.
const mostWarnings = 3

// warn says at the start what policy check warns of, in short.
func warn(a *cli.App, engine *rego.Engine, paths []string) {
	if len(paths) == 0 { // the workspace policy; tests hold it to have none
		return
	}
	all := engine.WarningsFor(policyTools(tools(a)), false)
	for i, w := range all {
		if i == mostWarnings {
			_, _ = fmt.Fprintf(a.Err, "remit: %s more of the policy: remit policy check lists them\n", cli.Count(len(all)-i, "warning"))
			return
		}
		_, _ = fmt.Fprintf(a.Err, "remit: warning: policy: %s; %s\n", cli.Printable(cli.WithPlace(w.Text, w.At)), cli.Printable(w.Fix))
	}
}

// policyTools is what a policy is held against.
func policyTools(tools []tool.Tool) []rego.Tool {
	out := make([]rego.Tool, 0, len(tools))
	for _, t := range tools {
		one := rego.Tool{Name: t.Name(), Version: t.Spec().Version}
		if t.Spec().ClassOf == nil {
			one.Classes = []string{string(t.Class())}
		}
		var schema struct {
			Type       string
			Properties map[string]json.RawMessage
			Required   []string
		}
		if json.Unmarshal(t.InputSchema(), &schema) == nil && schema.Type == "object" {
			one.Args = []string{}
			for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
				one.Args = append(one.Args, name)
				if !slices.Contains(schema.Required, name) {
					one.Missing = append(one.Missing, name)
				}
			}
		}
		out = append(out, one)
	}
	return out
}

func policyCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Begin, check and ask policies",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCommand(a), policyCheckCommand(a), testCommand(a), evalCommand(a), explainCommand(a), schemaCommand(a))
	return cmd
}

func writeCheck(p cli.Style, w io.Writer, c checkOutput, notes bool) {
	for _, bad := range c.Problems {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.Bad("✗"), cli.Printable(cli.WithPlace(bad.Text, bad.At)))
		p.Details(w, &cli.Problem{Fix: bad.Fix})
	}
	failed := 0
	for _, t := range c.Tests {
		if t.Status == "fail" || t.Status == "error" {
			failed++
			_, _ = fmt.Fprintf(w, "%s %s %s: %s\n", p.Bad("✗"), t.Status, t.At, cli.Printable(t.Name))
			p.Details(w, &cli.Problem{Why: t.Text})
		}
	}
	for _, n := range c.Warnings {
		_, _ = fmt.Fprintf(w, "%s warning: %s\n", p.Doubt("!"), cli.Printable(cli.WithPlace(n.Text, n.At)))
		p.Details(w, &cli.Problem{Fix: n.Fix})
	}
	if len(c.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.Doubt("·"), strings.Join(c.Uncovered, ", "))
	}
	if notes {
		writeNotes(p, w, c)
	} else {
		writeNoteCounts(p, w, c)
	}
	if len(c.Problems) > 0 {
		_, _ = fmt.Fprintln(w, p.Bad("not loaded: ")+cli.Count(len(c.Problems), "problem"))
		return
	}
	_, _ = fmt.Fprintf(w, "loaded; %s, %d failed\n", cli.Count(len(c.Tests), "test"), failed)
}

// writeNoteCounts sums up what is no finding: a note changes no decision, and a policy has many.
func writeNoteCounts(p cli.Style, w io.Writer, c checkOutput) {
	rules := map[string]bool{}
	for _, n := range c.Slow {
		rules[n.At] = true
	}
	var sums []string
	if n := len(c.Unchecked); n > 0 {
		sums = append(sums, cli.Count(n, "place")+" could not be checked for misspelt fields")
	}
	if n := len(rules); n > 0 {
		sums = append(sums, cli.Count(n, "rule")+" could be faster")
	}
	if len(sums) > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: --notes lists them\n", p.Doubt("·"), strings.Join(sums, ", "))
	}
}

// writeNotes lists what is no finding.
func writeNotes(p cli.Style, w io.Writer, c checkOutput) {
	for _, n := range c.Unchecked {
		_, _ = fmt.Fprintf(w, "%s %s: not checked: %s\n", p.Doubt("·"), n.At, cli.Printable(n.Text))
	}
	said := rego.UncheckedRef{}
	for _, n := range c.Slow {
		// A document that is read whole has many parts that differ: --json lists them.
		if head, _, whole := strings.Cut(n.Text, " is read whole, and "); whole {
			n.Text = head + " is read whole, with what differs from call to call"
		}
		if n != said {
			_, _ = fmt.Fprintf(w, "%s %s: slower than it could be: %s\n", p.Doubt("·"), n.At, cli.Printable(n.Text))
		}
		said = n
	}
}
