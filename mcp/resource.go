package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/remit-dev/remit/tool"
)

// Resource is something that clients read by its URI. A read is a call of a
// tool of the runtime: authorized, journaled, and visible only to sessions that
// see the tool. The texts and parts of the tool's result are the contents.
type Resource struct {
	// URI names the resource, such as notes://all. A URI template of RFC 6570,
	// such as notes://{path}, names all URIs that match; each variable becomes
	// the argument of the same name.
	URI         string
	Name, Title string // for programs, and for people
	Description string
	MediaType   string // of the contents, if they are text
	Tool        string
	Input       tool.Args // further arguments
}

// Prompt is a text that users choose in their client. A call of a tool returns
// its messages: the texts and parts of the result as messages of the user, or
// those of a Result. The client fills in the tool's arguments that Input omits.
type Prompt struct {
	Name, Title string
	Description string
	Tool        string
	Input       tool.Args
}

// resourceSet holds the resources and prompts of a server. The server replaces
// it and never changes it.
type resourceSet struct {
	resources atomic.Pointer[[]resource]
	prompts   atomic.Pointer[[]Prompt]
}

// resource is a Resource with its URI template.
type resource struct {
	Resource
	template *uritemplate.Template
}

// several reports whether the URI is a template.
func (r resource) several() bool { return len(r.template.Varnames()) > 0 }

func load[T any](p *atomic.Pointer[[]T]) []T {
	if all := p.Load(); all != nil {
		return *all
	}
	return nil
}

// SetResources replaces the resources that clients can read, and notifies
// clients. A new server has none.
func (s *Server) SetResources(all ...Resource) error {
	var made []resource
	seen := map[string]bool{}
	for _, r := range all {
		t, err := uritemplate.New(r.URI)
		switch {
		case err != nil || r.URI == "":
			return fmt.Errorf("mcp: resource %q: its URI is no URI, and no template of some as RFC 6570 has them", r.URI)
		case r.Name == "" || r.Tool == "":
			return fmt.Errorf("mcp: resource %q: it needs a name and a tool", r.URI)
		case seen[r.URI]:
			return fmt.Errorf("mcp: there are two resources %q", r.URI)
		}
		seen[r.URI] = true
		r.Input = maps.Clone(r.Input)
		made = append(made, resource{r, t})
	}
	s.offers.resources.Store(&made)
	s.registerResources()
	return nil
}

// SetPrompts replaces the prompts that users can choose, and notifies clients.
// A new server has none.
func (s *Server) SetPrompts(all ...Prompt) error {
	seen := map[string]bool{}
	made := slices.Clone(all)
	for i, p := range made {
		switch {
		case p.Name == "" || p.Tool == "":
			return fmt.Errorf("mcp: prompt %q: it needs a name and a tool", p.Name)
		case seen[p.Name]:
			return fmt.Errorf("mcp: there are two prompts %q", p.Name)
		}
		seen[p.Name] = true
		made[i].Input = maps.Clone(p.Input)
	}
	s.offers.prompts.Store(&made)
	s.registerPrompts()
	return nil
}

// Clients never see these entries of the SDK. Changing them makes the SDK
// notify its clients, and their presence makes it declare the capability.

func (s *Server) registerResources() {
	const stands = "remit:changed"
	if !s.serves("resources/list") {
		s.sdk.RemoveResources(stands)
		return
	}
	s.sdk.AddResource(&sdk.Resource{URI: stands, Name: "changed"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, errElsewhere
	})
}

func (s *Server) registerPrompts() {
	const stands = "changed"
	if !s.serves("prompts/list") {
		s.sdk.RemovePrompts(stands)
		return
	}
	s.sdk.AddPrompt(&sdk.Prompt{Name: stands}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return nil, errElsewhere
	})
}

var errElsewhere = errors.New("mcp: answered elsewhere")

// ResourceChanged notifies the clients that subscribed to a resource that it
// changed.
func (s *Server) ResourceChanged(ctx context.Context, uri string) error {
	return s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// resource finds the resource of a URI, and the arguments in the URI.
func (s *Server) resource(uri string) (found resource, said map[string]string, ok bool) {
	all := load(&s.offers.resources)
	if i := slices.IndexFunc(all, func(r resource) bool { return r.URI == uri && !r.several() }); i >= 0 {
		return all[i], nil, true
	}
	for _, r := range all {
		if !r.several() {
			continue
		}
		if values := r.template.Match(uri); values != nil {
			said = map[string]string{}
			for name, v := range values {
				said[name] = v.String()
			}
			return r, said, true
		}
	}
	return resource{}, nil, false
}

func (s *Server) prompt(name string) (Prompt, bool) {
	all := load(&s.offers.prompts)
	i := slices.IndexFunc(all, func(p Prompt) bool { return p.Name == name })
	if i < 0 {
		return Prompt{}, false
	}
	return all[i], true
}

// argument is the schema of one argument, as far as the server reads it.
type argument struct {
	Type               any
	Title, Description string
	Enum               []any
}

// argumentsOf lists the arguments of a tool, and the required ones.
func argumentsOf(t tool.Tool) (by map[string]argument, required []string) {
	data, _ := inputSchema(t)
	var said struct {
		Properties map[string]argument
		Required   []string
	}
	_ = json.Unmarshal(data, &said) // a schema without these members has none
	return said.Properties, said.Required
}

// filled returns the input of a call: the fixed arguments, and those of the
// client as texts.
func filled(t tool.Tool, fixed tool.Args, said map[string]string) (json.RawMessage, error) {
	all := map[string]any{}
	known, _ := argumentsOf(t)
	for name, text := range said {
		all[name] = value(known[name], text)
	}
	maps.Copy(all, fixed)
	return json.Marshal(all)
}

// value converts a text to the type of an argument that takes no strings.
func value(a argument, text string) any {
	switch a.Type {
	case "integer", "number", "boolean":
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return text
}

// serves reports whether the server has anything for a method.
func (s *Server) serves(method string) bool {
	others := s.catalogEntries()
	resources := len(load(&s.offers.resources)) > 0 || others.Resources != nil || others.Templates != nil
	prompts := len(load(&s.offers.prompts)) > 0 || others.Prompts != nil
	switch {
	case strings.HasPrefix(method, "resources/"):
		return resources
	case strings.HasPrefix(method, "prompts/"):
		return prompts
	case method == "completion/complete":
		return resources || prompts
	}
	return true
}

// able removes the capabilities that the server has nothing for.
func (s *Server) able(caps *sdk.ServerCapabilities) {
	if caps != nil && !s.serves("completion/complete") {
		caps.Completions = nil
	}
}

// maySubscribe returns an error for resources that the session does not see.
func (s *Server) maySubscribe(ctx context.Context, extra *sdk.RequestExtra, uris ...string) error {
	if len(uris) == 0 {
		return nil
	}
	st, err := s.clientSessionOf(ctx, extra)
	if err != nil {
		return err
	}
	for _, uri := range uris {
		r, _, _ := s.resource(uri)
		if _, shown := shownTool(ctx, st.session, r.Tool); shown {
			continue
		}
		if _, ok := s.upstreamResource(ctx, st.session, uri); !ok {
			return sdk.ResourceNotFoundError(uri)
		}
	}
	return nil
}
