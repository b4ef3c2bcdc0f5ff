package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	modules := map[string]string{}
	for _, path := range paths {
		if err := addPolicy(modules, path, tests); err != nil {
			return nil, &problem{
				code: exitUsage, what: fmt.Sprintf("the policy %q cannot be read", path), why: plainError(err),
				fix: "name a .rego file, or a folder of them",
			}
		}
	}
	return rego.New(rego.Options{Modules: modules})
}

func addPolicy(modules map[string]string, path string, tests bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return addFolder(modules, path)
	}
	if err := addFile(modules, path); err != nil || !tests {
		return err
	}
	beside := strings.TrimSuffix(path, ".rego") + "_test.rego"
	if _, err := os.Stat(beside); err != nil || strings.HasSuffix(path, "_test.rego") {
		return nil
	}
	return addFile(modules, beside)
}

// addFolder adds what lies below a folder. One without a policy is refused: a
// misspelt path would else be a policy that lacks half of its rules.
func addFolder(modules map[string]string, dir string) error {
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".rego" {
			return err
		}
		found++
		return addFile(modules, path)
	})
	if err == nil && found == 0 {
		return errors.New("no .rego file is in that folder")
	}
	return err
}

func addFile(modules map[string]string, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	modules[filepath.ToSlash(filepath.Clean(path))] = string(text)
	return nil
}

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
	cmd.AddCommand(a.policyCheckCommand(), a.policyEvalCommand(), a.policySchemaCommand())
	return cmd
}

func (a *app) policyCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Load a policy and run its own tests",
		Long: "Loads the policy of the given files and folders, says what is wrong with it and where, what could not be checked,\n" +
			"and runs its *_test.rego. Exit codes: 0 it is good; 2 usage, or a file that cannot be read; 5 it is not good.",
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
	c := checked{Problems: []rego.Problem{}, Unchecked: []rego.Note{}, Tests: []rego.TestResult{}, Uncovered: []string{}}
	engine, err := loadPolicy(paths, true)
	var report rego.TestReport
	if err == nil {
		c.Revision, c.Unchecked = engine.Revision(), listed(engine.Unchecked())
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
	if len(c.Uncovered) > 0 {
		_, _ = fmt.Fprintf(w, "%s no test reaches %s\n", p.doubt("·"), strings.Join(c.Uncovered, ", "))
	}
	if len(c.Problems) > 0 {
		_, _ = fmt.Fprintln(w, p.bad("not loaded: ")+count(len(c.Problems), "problem"))
		return
	}
	_, _ = fmt.Fprintf(w, "loaded; %s, %d failed\n", count(len(c.Tests), "test"), failed)
}
