package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonpatch"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// patchOptions holds the flags of remit tools patch.
type patchOptions struct {
	definitions []string
	patch       string
	write, json bool
}

// patchOutput is the JSON form of an adjustment.
type patchOutput struct {
	Tool    string           `json:"tool"`
	Parent  string           `json:"parent"` // digest of the adjusted declaration
	Digest  string           `json:"digest"`
	Changes []adjustedChange `json:"changes"`
	Written string           `json:"written,omitempty"` // path of the written file
}

type adjustedChange struct {
	Path   string       `json:"path"`
	Before *canon.Value `json:"before"` // null: the member was absent
	After  *canon.Value `json:"after"`
}

func adjustCommand(a *cli.App) *cobra.Command {
	var f patchOptions
	cmd := &cobra.Command{
		Use: "patch NAME --patch FILE [--write]", Short: "Change what a tool declares, never to more",
		Long: "Applies a JSON patch (RFC 6902) to the declaration of a tool and shows what changes: description, tags, a narrower input schema,\n" +
			"narrower needs, a stricter effect class or destination, hints that promise less. Anything wider is refused with its place.\n" +
			"With --write the change goes into the definition file that the tool comes from (--definitions), or is kept as NAME.adjust.json\n" +
			"beside the code, for Tool.Patch; where the tool does not say where that is, the patch is printed, and the exit code is 2.\n" +
			"The adjusted tool is another declaration: it is graded and approved anew.",
		Args: cli.WantArgs(1, 1, "the name of one tool"),
		RunE: func(_ *cobra.Command, args []string) error { return adjustTool(a, f, args[0]) },
	}
	state.AddDefinitionsFlag(cmd, &f.definitions)
	cmd.Flags().StringVar(&f.patch, "patch", "", "`FILE` with the operations; - is standard input")
	cmd.Flags().BoolVar(&f.write, "write", false, "write it down, instead of only showing it")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object")
	return cmd
}

func adjustTool(a *cli.App, f patchOptions, name string) error {
	all, err := state.DefinedTools(a, f.definitions, nil)
	if err != nil {
		return err
	}
	if _, err := selectTools(all.All(), []string{name}); err != nil {
		return err
	}
	was, _ := all.Get(name) // the newest of several versions
	patch, err := readPatch(a, f.patch)
	if err != nil {
		return err
	}
	is, err := was.Patch(patch)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: "nothing was changed", Why: err.Error()}
	}
	out, err := compare(was, is)
	if err != nil {
		return err
	}
	if f.write {
		if out.Written, err = saveAdjusted(a, f, was, is, patch); err != nil {
			return err
		}
	}
	if f.json {
		a.WriteJSON(out)
	} else {
		writeAdjusted(a.Style(), a.Out, out)
	}
	return nil
}

func readPatch(a *cli.App, name string) ([]byte, error) {
	const most = 1 << 20
	var raw []byte
	var err error
	switch name {
	case "":
		return nil, cli.UsageProblem("--patch names no file")
	case "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, most+1))
	default:
		raw, err = os.ReadFile(name)
	}
	if err == nil && len(raw) > most {
		err = errors.New("it has more than 1 MiB")
	}
	if err != nil {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the patch %q cannot be read", name), Why: cli.PlainError(err)}
	}
	return raw, nil
}

func declarationOf(t tool.Tool) (canon.Value, error) {
	raw, err := t.Declaration()
	if err != nil {
		return canon.Value{}, err
	}
	return canon.Parse(raw, canon.DefaultLimits())
}

// compare lists the differences between two declarations, except their
// digests.
func compare(was, is tool.Tool) (patchOutput, error) {
	out := patchOutput{Tool: was.Name(), Parent: was.Digest(), Digest: is.Digest(), Changes: []adjustedChange{}}
	before, err := declarationOf(was)
	if err != nil {
		return out, err
	}
	after, err := declarationOf(is)
	if err != nil {
		return out, err
	}
	there := func(v canon.Value) *canon.Value {
		if v.Kind() == canon.Invalid {
			return nil
		}
		return &v
	}
	for _, c := range jsonpatch.Differences(before, after) {
		if c.Path != "/digest" {
			out.Changes = append(out.Changes, adjustedChange{c.Path, there(c.Before), there(c.After)})
		}
	}
	return out, nil
}

func writeAdjusted(p cli.Style, w io.Writer, r patchOutput) {
	_, _ = fmt.Fprintf(w, "%s\n", p.Bold(cli.Printable(r.Tool)))
	for _, c := range r.Changes {
		_, _ = fmt.Fprintf(w, "  %s\n", cli.Printable(c.Path))
		valueLine(w, p.Bad("-"), c.Before)
		valueLine(w, p.Good("+"), c.After)
	}
	_, _ = fmt.Fprintf(w, "  %s -> %s\n", p.Faint(r.Parent), p.Faint(r.Digest))
	if r.Written != "" {
		_, _ = fmt.Fprintf(w, "%s written to %s; grade and approve it anew\n", p.Good("✓"), cli.Printable(r.Written))
	}
}

func valueLine(w io.Writer, mark string, v *canon.Value) {
	if v != nil {
		_, _ = fmt.Fprintf(w, "    %s %s\n", mark, cli.Printable(string(v.Canonical())))
	}
}

// saveAdjusted writes an adjustment to the definition file, or beside the code
// of the tool. It returns the path.
func saveAdjusted(a *cli.App, f patchOptions, was, is tool.Tool, patch []byte) (file string, err error) {
	from := was.Spec().Provenance
	if from.Kind == provenance.Definition && len(f.definitions) > 0 {
		file = definitionFile(f.definitions, from)
		return file, rewriteDefinition(a, file, was, is)
	}
	pinned, err := pinPatch(was, patch)
	if err != nil {
		return "", err
	}
	folder, ok := besideCode(from)
	if !ok {
		_, _ = fmt.Fprintf(a.Out, "%s\n", pinned)
		return "", &cli.Problem{
			Code: cli.ExitUsage, What: "nothing was written, the patch is above", Why: "the tool's provenance names no file or folder that is here",
			Fix: "keep it beside the code of the tool, and make the tool with Tool.Patch",
		}
	}
	file = filepath.Join(folder, was.Name()+".adjust.json")
	return file, writeNew(file, append(pinned, '\n'))
}

// definitionFile returns the file of a definition. It resolves links, because
// replacing a link would remove it.
func definitionFile(folders []string, from provenance.Source) (file string) {
	for _, folder := range folders {
		at, err := filepath.EvalSymlinks(filepath.Join(folder, filepath.FromSlash(from.Name)))
		if err != nil {
			continue
		}
		file = at
		if text, err := os.ReadFile(at); err == nil && string(canon.SumBytes(text)) == from.Digest {
			break
		}
	}
	return file
}

// besideCode returns the folder of a host tool's code, if its provenance names
// one.
func besideCode(from provenance.Source) (string, bool) {
	if from.Kind != provenance.Host || from.Name == "" {
		return "", false
	}
	info, err := os.Stat(from.Name)
	switch {
	case err != nil:
		return "", false
	case info.IsDir():
		return from.Name, true
	default:
		return filepath.Dir(from.Name), true
	}
}

// pinPatch returns a patch that applies only to the given declaration.
func pinPatch(t tool.Tool, patch []byte) ([]byte, error) {
	v, err := canon.Parse(patch, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	steps := []any{map[string]any{"op": "test", "path": "/digest", "value": t.Digest()}}
	for _, e := range v.Elements() {
		if path, _ := e.Get("path"); path.Text() != "/digest" {
			steps = append(steps, e.Any())
		}
	}
	return json.MarshalIndent(steps, "", "  ")
}

// writeNew writes a new file. It returns an error if the file exists.
func writeNew(file string, text []byte) error {
	written, err := writeTemporary(file, text)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(written) }()
	if err := os.Link(written, file); err != nil {
		return &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("%s was not written", file), Why: cli.PlainError(err),
			Fix: "an adjustment that is there already is part of what the tool is: take it out, or add to it by hand",
		}
	}
	return nil
}

// writeTemporary writes a temporary file in the folder of a file, and returns its path.
func writeTemporary(file string, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".adjust-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), err
}

// sameDeclaration reports whether two tools declare the same, except their
// provenance.
func sameDeclaration(a, b tool.Tool) bool {
	both, err := compare(a, b)
	return err == nil && len(both.Changes) == 0
}
