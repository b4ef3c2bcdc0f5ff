package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm/rego"
)

// formatFlags holds the flags of remit policy fmt.
type formatFlags struct{ write, list, fail, json bool }

// formatOutput is the JSON form of a formatted file.
type formatOutput struct {
	File    string `json:"file"` // - is standard input
	Changed bool   `json:"changed"`
	Text    string `json:"text,omitempty"` // absent with --list and --write
}

func formatCommand(a *cli.App) *cobra.Command {
	var f formatFlags
	cmd := &cobra.Command{
		Use: "fmt [PATH]...", Short: "Format policy files as opa fmt does",
		Long: "Formats files, and the .rego files in folders, as opa fmt does, and writes them to standard output. Without a path, or\n" +
			"with -, it formats standard input.\n\n" +
			"Exit codes: 0 formatted; 2 usage, or a file that is not a policy; 5 with --fail, a file that was not formatted.",
		RunE: func(cmd *cobra.Command, paths []string) error { return runFormat(cmd.Context(), a, f, paths) },
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write each file back that changes, and print nothing")
	cmd.Flags().BoolVarP(&f.list, "list", "l", false, "list the files that change, and do not print them")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object for each file")
	cmd.Flags().BoolVar(&f.fail, "fail", false, "exit with code 5 if a file changes")
	return cmd
}

func runFormat(ctx context.Context, a *cli.App, f formatFlags, paths []string) error {
	if len(paths) == 0 || len(paths) == 1 && paths[0] == "-" {
		if f.write {
			return cli.UsageProblem("--write needs files: standard input cannot be written back")
		}
		text, err := cli.ReadInput(ctx, a.In, int64(canon.DefaultLimits().Bytes))
		if err != nil {
			return inputProblem("-", err)
		}
		return f.format(a, "-", text)
	}
	files, err := regoFiles(paths)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range files { // also after one that cannot be formatted
		text, err := os.ReadFile(name)
		if err != nil {
			err = formatProblem(name, err)
		} else {
			err = f.format(a, name, text)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// format formats one file.
func (f formatFlags) format(a *cli.App, name string, text []byte) error {
	formatted, err := rego.Format(name, text)
	if err != nil {
		return formatProblem(name, err)
	}
	changes := !bytes.Equal(text, formatted)
	if changes && f.fail {
		a.ExitWith(cli.ExitFailed)
	}
	if changes && f.list && !f.json {
		_, _ = fmt.Fprintln(a.Out, cli.Printable(name))
	}
	if changes && f.write {
		if err := rewrite(name, text, formatted); err != nil {
			return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("%q cannot be written", name), Why: cli.PlainError(err), Fix: "make room, or the file writable, and format it again"}
		}
	}
	if f.list || f.write {
		formatted = nil
	}
	if f.json {
		a.WriteJSON(formatOutput{name, changes, string(formatted)})
		return nil
	}
	_, err = a.Out.Write(formatted)
	return err
}

// rewrite replaces the content of a file, which keeps its owner, its names and its attributes. A copy beside it holds the old
// content until the new one is on stable storage, so that a full disk or the end of the process loses nothing.
func rewrite(name string, old, content []byte) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	kept := name + ".before-fmt"
	if err := writeNew(kept, old); err != nil {
		return err
	}
	if err = overwrite(f, content); err != nil {
		if undo := overwrite(f, old); undo != nil {
			return fmt.Errorf("%w; the old content is in %s", err, kept)
		}
	}
	return errors.Join(err, os.Remove(kept))
}

// writeNew writes a file that must not be there.
func writeNew(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func overwrite(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(len(content))), f.Sync())
}

// regoFiles returns the named files, and the .rego files in the named folders.
func regoFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, formatProblem(path, err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".rego") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, formatProblem(path, err)
		}
	}
	return files, nil
}

func formatProblem(name string, err error) error {
	p := &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("%q cannot be formatted", name), Why: cli.PlainError(err), Fix: "name a .rego file, a folder of them, or - for standard input"}
	var bad *rego.LoadError
	if errors.As(err, &bad) && len(bad.Problems) > 0 {
		first := bad.Problems[0]
		p.Why, p.Fix = cli.WithPlace(first.Text, first.At), first.Fix
	}
	return p
}
