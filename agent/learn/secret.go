package learn

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// secretReason is the reason of the pack workspace to deny a secret.
const secretReason = "files that usually hold secrets are out of reach"

// secretNames tells which paths usually hold secrets, by the list of the pack
// workspace.
type secretNames struct {
	engine *rego.Engine
	known  map[string]bool
}

func newSecretNames() (*secretNames, error) {
	e, err := rego.Load(rego.Source{FS: policies.Workspace(), NoTests: true})
	return &secretNames{e, map[string]bool{}}, err
}

// in reports whether an access names a secret, as its resource or in a command.
func (s *secretNames) in(ctx context.Context, r perm.Request) (bool, error) {
	if r.Access.Resource.Kind == "secret" {
		return true, nil
	}
	paths := []string{r.Access.Resource.Path}
	if r.Call.Script != nil {
		for _, c := range r.Call.Script.Commands {
			for _, arg := range c.Args {
				if arg != nil {
					paths = append(paths, *arg)
				}
			}
		}
		for _, to := range r.Call.Script.Redirects {
			if to.Path != nil {
				paths = append(paths, *to.Path)
			}
		}
	}
	var args struct {
		Path  string   `json:"path"`
		Paths []string `json:"paths"`
	}
	if json.Unmarshal(r.Call.Args, &args) == nil {
		paths = append(append(paths, args.Path), args.Paths...)
	}
	for _, p := range paths {
		if hit, err := s.path(ctx, p); hit || err != nil {
			return hit, err
		}
	}
	return false, nil
}

func (s *secretNames) path(ctx context.Context, text string) (bool, error) {
	if at := strings.LastIndexAny(text, "=:@"); at >= 0 { // such as --file=.env
		text = text[at+1:]
	}
	text = strings.TrimPrefix(path.Clean("/"+text), "/")
	if text == "" || len(text) > 512 || strings.ContainsAny(text, "\n\x00") {
		return false, nil
	}
	if hit, ok := s.known[text]; ok {
		return hit, nil
	}
	segments := strings.Split(text, "/")
	d, err := s.engine.Decide(ctx, perm.Request{
		Purpose: perm.PurposeRun, Tool: perm.ToolFacts{Name: "file_read"},
		Access: perm.AccessFacts{Action: perm.Read, Resource: perm.ResourceFacts{
			Kind: "file", Root: "workspace", Path: text, Segments: segments, Name: segments[len(segments)-1], Text: "file://workspace/" + text,
		}},
	}.Filled())
	if err != nil {
		return false, err
	}
	for _, r := range d.Reasons() {
		if r.Set == "deny" && r.Text == secretReason {
			s.known[text] = true
			return true, nil
		}
	}
	s.known[text] = false
	return false, nil
}
