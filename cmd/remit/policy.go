package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// loadPolicy makes an engine of files and folders; none is the workspace
// policy. Modules have the names that they were given by, so that a reason
// leads to its line.
func loadPolicy(paths []string, tests bool) (*rego.Engine, error) {
	if len(paths) == 0 {
		return rego.Load(rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix})
	}
	var all policyFiles
	for _, path := range paths {
		if err := all.add(path, tests); err != nil {
			return nil, &problem{
				code: exitUsage, what: fmt.Sprintf("the policy %q cannot be read", path), why: plainError(err),
				fix: "name a .rego file, or a folder of them",
			}
		}
	}
	return rego.New(rego.Options{Sources: all.sources})
}

// policyFiles are the files that a command line names, each once, as sources: a
// folder is the root of what is below it, so that the revision is the same
// whatever path leads there.
type policyFiles struct {
	sources []rego.Source
	names   map[string]bool
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
		} else if path.Base(name) != "data.json" {
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

// plainError leaves the path out, which the message names already.
func plainError(err error) string {
	var pathed *fs.PathError
	if errors.As(err, &pathed) {
		return pathed.Err.Error()
	}
	return err.Error()
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Check policies, and ask them",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyCheckCommand(), a.policyTestCommand(), a.policyEvalCommand(), a.policyExplainCommand(), a.policySchemaCommand())
	return cmd
}

func (a *app) policyCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Load a policy and run its own tests",
		Long: "Loads the policy of the given files and folders, says what is wrong with it and where, what could not be checked,\n" +
			"what makes decisions slow, and runs its *_test.rego. Exit codes: 0 it is good; 2 usage, or a file that cannot be read; 5 it is not good.",
		Args: func(_ *cobra.Command, paths []string) error {
			if len(paths) > 0 {
				return nil
			}
			e := usage("there is no policy to check")
			e.fix = "name its files or folders: remit policy check policy.rego"
			return e
		},
		RunE: func(cmd *cobra.Command, paths []string) error { return a.policyCheck(cmd, paths, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// checked is what checking a policy came to.
type checked struct {
	OK        bool              `json:"ok"`
	Revision  string            `json:"revision"`
	Problems  []rego.Problem    `json:"problems"`
	Unchecked []rego.Note       `json:"unchecked"`
	Slow      []rego.Note       `json:"slow"` // what makes decisions slower than they could be
	Tests     []rego.TestResult `json:"tests"`
	Uncovered []string          `json:"uncovered"`
}

func (a *app) policyCheck(cmd *cobra.Command, paths []string, asJSON bool) error {
	c, err := check(cmd, paths)
	if err != nil {
		return err
	}
	if !c.OK {
		a.code = exitFailed
	}
	if asJSON {
		newJSON(a.out).write(c)
		return nil
	}
	a.paint().checked(a.out, c)
	return nil
}

// check tells what is wrong with a policy apart from why it could not be
// looked at.
func check(cmd *cobra.Command, paths []string) (checked, error) {
	c := checked{Problems: []rego.Problem{}, Unchecked: []rego.Note{}, Slow: []rego.Note{}, Tests: []rego.TestResult{}, Uncovered: []string{}}
	engine, err := loadPolicy(paths, true)
	var report rego.TestReport
	if err == nil {
		c.Revision, c.Unchecked, c.Slow = engine.Revision(), listed(engine.Unchecked()), listed(engine.Slow())
		report, err = engine.Test(cmd.Context())
	}
	var bad *rego.LoadError
	if errors.As(err, &bad) {
		c.Problems = listed(bad.Problems)
		return c, nil
	}
	c.Tests, c.Uncovered = listed(report.Results), listed(report.Uncovered)
	c.OK = len(report.Failed()) == 0
	return c, err
}

func (p paint) checked(w io.Writer, c checked) {
	for _, bad := range c.Problems {
		_, _ = fmt.Fprintf(w, "%s %s\n", p.bad("✗"), printable(withPlace(bad.Text, bad.At)))
		p.details(w, &problem{fix: bad.Fix})
	}
	failed := 0
	for _, t := range c.Tests {
		if t.Status == "fail" || t.Status == "error" {
			failed++
			_, _ = fmt.Fprintf(w, "%s %s %s: %s\n", p.bad("✗"), t.Status, t.At, printable(t.Name))
			p.details(w, &problem{why: t.Text})
		}
	}
	for _, n := range c.Unchecked {
		_, _ = fmt.Fprintf(w, "%s %s: not checked: %s\n", p.doubt("·"), n.At, printable(n.Text))
	}
	said := rego.Note{}
	for _, n := range c.Slow {
		// A document that is read whole has many parts that differ: --json lists them.
		if head, _, whole := strings.Cut(n.Text, " is read whole, and "); whole {
			n.Text = head + " is read whole, with what differs from call to call"
		}
		if n != said {
			_, _ = fmt.Fprintf(w, "%s %s: slower than it could be: %s\n", p.doubt("·"), n.At, printable(n.Text))
		}
		said = n
	}
	if len(c.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.doubt("·"), strings.Join(c.Uncovered, ", "))
	}
	if len(c.Problems) > 0 {
		_, _ = fmt.Fprintln(w, p.bad("not loaded: ")+count(len(c.Problems), "problem"))
		return
	}
	_, _ = fmt.Fprintf(w, "loaded; %s, %d failed\n", count(len(c.Tests), "test"), failed)
}
