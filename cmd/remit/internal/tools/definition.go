package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonpatch"
	"github.com/remit-dev/remit/tool"
)

// inDefinition maps members of a declaration to their paths in a definition
// file.
var inDefinition = map[string][]string{
	"description": {"function", "description"}, "version": {"version"}, "deprecated": {"deprecated"}, "tags": {"tags"},
	"input": {"function", "parameters"}, "needs": {"needs"}, "effect_class": {"effectClass"}, "destination": {"destination"},
	"idempotent": {"hints", "idempotent"}, "timeout": {"hints", "timeout"}, "sensitive": {"sensitive"},
}

// rewriteDefinition writes the differences between two declarations to the
// definition file of the first one. It replaces the file in one step. It checks
// the new text first, and returns an error if the file changed meanwhile.
func rewriteDefinition(a *cli.App, file string, was, is tool.Tool) error {
	refuse := func(why error) error {
		return &cli.Problem{Code: cli.ExitUsage, What: file + " was not changed", Why: cli.PlainError(why), Fix: "change it by hand; remit tools check looks at it"}
	}
	info, err := os.Stat(file)
	if err != nil {
		return refuse(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return refuse(err)
	}
	if string(canon.SumBytes(text)) != was.Spec().Provenance.Digest {
		return refuse(errFileChanged)
	}
	changed, err := updateDefinition(text, was, is)
	if err != nil {
		return refuse(err)
	}
	if err := checkDefinition(a, filepath.Base(file), changed, is); err != nil {
		return refuse(err)
	}
	written, err := writeTemporary(file, changed)
	if err != nil {
		return refuse(err)
	}
	defer func() { _ = os.Remove(written) }() // the file is gone after a rename
	if err := os.Chmod(written, info.Mode().Perm()); err != nil {
		return refuse(err)
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
		return refuse(errFileChanged)
	}
	if err := os.Rename(written, file); err != nil {
		return refuse(err)
	}
	return nil
}

// updateDefinition returns the text of a definition with the differences between two
// declarations.
func updateDefinition(text []byte, was, is tool.Tool) ([]byte, error) {
	before, err := declarationOf(was)
	if err != nil {
		return nil, err
	}
	after, err := declarationOf(is)
	if err != nil {
		return nil, err
	}
	changes := jsonpatch.Differences(members(before), members(after))
	done := map[string]bool{}
	for _, c := range changes {
		name := firstToken(c.Path)
		place, known := inDefinition[name]
		switch {
		case name == "digest" || done[name]:
			continue
		case !known:
			return nil, fmt.Errorf("a definition file does not say %q", name)
		}
		done[name] = true
		value, _ := members(after).Get(name)
		if text, err = withMember(text, place, value.Canonical()); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(text), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// members returns a declaration with the members of its hints at the top level.
func members(v canon.Value) canon.Value {
	flat := map[string]any{}
	for name, m := range v.Members() {
		if name != "hints" {
			flat[name] = m.Any()
			continue
		}
		for hint, h := range m.Members() {
			flat[hint] = h.Any()
		}
	}
	out, err := canon.From(flat)
	if err != nil {
		return canon.Value{} // members of one document always form another one
	}
	return out
}

func firstToken(path string) string {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			return path[1:i]
		}
	}
	return path[1:]
}

// withMember sets a member of a nested object and keeps the order of the
// others. An empty text removes the member.
func withMember(text []byte, place []string, value []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	var out bytes.Buffer
	out.WriteByte('{')
	put := func(name string, raw []byte) error {
		key, err := json.Marshal(name)
		if len(raw) > 0 && string(raw) != `""` {
			if out.Len() > 1 {
				out.WriteByte(',')
			}
			_, _ = fmt.Fprintf(&out, "%s:%s", key, raw)
		}
		return err
	}
	inner := func(raw []byte) ([]byte, error) {
		if len(place) == 1 {
			return value, nil
		}
		return withMember(raw, place[1:], value)
	}
	met := false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		if name == place[0] {
			met = true
			if raw, err = inner(raw); err != nil {
				return nil, err
			}
		}
		if err := put(fmt.Sprint(name), raw); err != nil {
			return nil, err
		}
	}
	if !met {
		raw, err := inner([]byte("{}"))
		if err == nil {
			err = put(place[0], raw)
		}
		if err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// checkDefinition returns an error unless the definition makes the given tool.
func checkDefinition(a *cli.App, name string, text []byte, meant tool.Tool) (err error) {
	dir, err := os.MkdirTemp("", "remit-adjust-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, name), text, fs.FileMode(0o600)); err != nil {
		return err
	}
	made, err := state.LoadDefinitions(a, os.DirFS(dir))
	if err != nil {
		return err
	}
	if len(made) != 1 || !sameDeclaration(meant, made[0]) {
		return errors.New("it would not say what was meant")
	}
	return nil
}
