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

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/tool"
)

// Resource is something that clients read by its URI. A read is a call of a tool of the runtime: asked for, on the journal,
// and there for those alone who are shown the tool. Its texts and parts are what is read.
type Resource struct {
	// URI names the resource, such as notes://all. One with parameters, as RFC 6570 writes them, such as notes://{path}, names all
	// that fit: what stands for a parameter is the argument of that name.
	URI         string
	Name, Title string // for programs, and for people
	Description string
	MediaType   string // of what is read, where it is text
	Tool        string
	Input       tool.Args // further arguments
}

// Prompt is a text that people choose at their client. Its messages are what a call of a tool returns: its text and parts are
// the user's, or a Result says more. What Input leaves open of the tool's arguments, the client fills in.
type Prompt struct {
	Name, Title string
	Description string
	Tool        string
	Input       tool.Args
}

// resourceSet are the resources and prompts of a server. They are replaced, never changed.
type resourceSet struct {
	resources atomic.Pointer[[]resource]
	prompts   atomic.Pointer[[]Prompt]
}

// resource is a Resource with its URI as a template.
type resource struct {
	Resource
	template *uritemplate.Template
}

// several reports whether the URI names more than one.
func (r resource) several() bool { return len(r.template.Varnames()) > 0 }

func load[T any](p *atomic.Pointer[[]T]) []T {
	if all := p.Load(); all != nil {
		return *all
	}
	return nil
}

// SetResources replaces the resources that clients can read, and tells them. None is what a new server has.
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
	s.standForResources()
	return nil
}

// SetPrompts replaces the prompts that people can choose, and tells clients. None is what a new server has.
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
	s.standForPrompts()
	return nil
}

// What the SDK holds is listed nowhere; that it was touched is what it tells its clients, and that it is there is what it says that
// the server can.

func (s *Server) standForResources() {
	const stands = "remit:changed"
	if !s.serves("resources/list") {
		s.sdk.RemoveResources(stands)
		return
	}
	s.sdk.AddResource(&sdk.Resource{URI: stands, Name: "changed"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, errElsewhere
	})
}

func (s *Server) standForPrompts() {
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

// ResourceChanged tells the clients that subscribed to a resource that it is another by now.
func (s *Server) ResourceChanged(ctx context.Context, uri string) error {
	return s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// resource finds what a URI names, and the arguments that it says.
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

// tools are those that a session is shown, by name.
func (s *Server) tools(ctx context.Context, in *agent.Session) map[string]tool.Tool {
	all, err := in.Tools(ctx)
	if err != nil {
		s.opts.Log.Warn("some tools are not listed", "error", err)
	}
	by := map[string]tool.Tool{}
	for _, t := range all {
		by[t.Name()] = t
	}
	return by
}

// argument is what a schema says of one.
type argument struct {
	Type               any
	Title, Description string
	Enum               []any
}

// argumentsOf lists the arguments of a tool, and those that a call has to have.
func argumentsOf(t tool.Tool) (by map[string]argument, required []string) {
	data, _ := inputSchema(t)
	var said struct {
		Properties map[string]argument
		Required   []string
	}
	_ = json.Unmarshal(data, &said) // one that says nothing of them has none
	return said.Properties, said.Required
}

// filled is the input of a call: what an offer says, and what the client does, as texts.
func filled(t tool.Tool, fixed tool.Args, said map[string]string) (json.RawMessage, error) {
	all := map[string]any{}
	known, _ := argumentsOf(t)
	for name, text := range said {
		all[name] = value(known[name], text)
	}
	maps.Copy(all, fixed)
	return json.Marshal(all)
}

// value is the value that a text stands for, where an argument takes no texts.
func value(a argument, text string) any {
	switch a.Type {
	case "integer", "number", "boolean":
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return text
}

// serves reports whether there is anything that a method is about.
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

// able takes what there is not out of what the server says that it can.
func (s *Server) able(caps *sdk.ServerCapabilities) {
	if caps != nil && !s.serves("completion/complete") {
		caps.Completions = nil
	}
}

// maySubscribe refuses to tell of resources that the session does not see.
func (s *Server) maySubscribe(ctx context.Context, extra *sdk.RequestExtra, uris ...string) error {
	if len(uris) == 0 {
		return nil
	}
	st, err := s.clientSessionOf(ctx, extra)
	if err != nil {
		return err
	}
	shown := s.tools(ctx, st.session)
	for _, uri := range uris {
		r, _, ok := s.resource(uri)
		if _, sees := shown[r.Tool]; ok && sees {
			continue
		}
		if _, ok := s.upstreamResource(ctx, st.session, uri); !ok {
			return sdk.ResourceNotFoundError(uri)
		}
	}
	return nil
}
