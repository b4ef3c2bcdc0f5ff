package clientrequest

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// mostAsked bounds the client requests of one call.
const mostAsked = 32

// Forwarder forwards the client requests of one server to the clients of its
// calls.
type Forwarder struct {
	Server         config.Server
	Folders        map[string]string    // of the runtime's roots, by name
	Log            *slog.Logger         // receives what was denied, or belongs to no call
	RunExclusively func(tools []string) // makes these tools run one at a time from now on
}

// NoteKey is the key of the note in which the journal records the client
// requests of a call.
const NoteKey = "asked"

// Capabilities returns the client capabilities that a server gets. One session
// of an older server serves all clients, so it gets what some client can
// support. A server that asks within calls gets the capabilities of each call's
// client.
func (w *Forwarder) Capabilities() *sdk.ClientCapabilities {
	c := &sdk.ClientCapabilities{}
	if w.Allows(config.Elicitation) {
		c.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	}
	if w.Allows(config.Sampling) {
		c.Sampling = &sdk.SamplingCapabilities{Tools: &sdk.SamplingToolsCapabilities{}}
	}
	if len(w.Server.Roots) > 0 || w.Allows(config.Roots) {
		c.RootsV2 = &sdk.RootCapabilities{}
	}
	return c
}

// Allows reports whether the configuration lets a server use a client feature.
// By default it can ask the user, who sees the name of the server and can
// decline. By default it cannot ask the model, which others pay for and which
// does not see the name.
func (w *Forwarder) Allows(a config.ClientFeature) bool {
	if w.Server.ClientFeatures == nil {
		return a == config.Elicitation
	}
	return slices.Contains(w.Server.ClientFeatures, a)
}

// MayAsk reports whether the server can send a client a request that the client
// supports.
func (w *Forwarder) MayAsk(can *sdk.ClientCapabilities) bool {
	return w.Allows(config.Elicitation) && can.Elicitation != nil || w.Allows(config.Sampling) && can.Sampling != nil || w.Allows(config.Roots) && can.RootsV2 != nil
}

// CapabilitiesOf returns the client capabilities for one call, as the gateway
// sends them.
func (w *Forwarder) CapabilitiesOf(f *wire.InFlightCall) map[string]any {
	c := map[string]any{}
	modes := map[string]any{}
	for _, mode := range []string{modeForm, modeURL} {
		if w.elicits(f, mode) {
			modes[mode] = map[string]any{}
		}
	}
	if len(modes) > 0 {
		c["elicitation"] = modes
	}
	if w.samples(f) {
		with := map[string]any{}
		if f.Client.Capabilities().Sampling.Tools != nil {
			with["tools"] = map[string]any{}
		}
		c["sampling"] = with
	}
	if len(w.Server.Roots) > 0 || w.hasRoots(f) {
		c["roots"] = map[string]any{}
	}
	return c
}

// caps returns the capabilities of the client of a call.
func caps(f *wire.InFlightCall) *sdk.ClientCapabilities {
	if f.Client == nil || f.Client.Capabilities() == nil {
		return &sdk.ClientCapabilities{}
	}
	return f.Client.Capabilities()
}

func (w *Forwarder) samples(f *wire.InFlightCall) bool {
	return w.Allows(config.Sampling) && caps(f).Sampling != nil
}

func (w *Forwarder) hasRoots(f *wire.InFlightCall) bool {
	return w.Allows(config.Roots) && len(w.Server.Roots) == 0 && caps(f).RootsV2 != nil
}

func (w *Forwarder) elicits(f *wire.InFlightCall, mode string) bool {
	c := caps(f).Elicitation
	if c == nil || !w.Allows(config.Elicitation) {
		return false
	}
	if mode == modeURL {
		return c.URL != nil
	}
	return c.Form != nil || c.URL == nil
}

// Roots returns the folders that a server can list: those that its
// configuration grants. Those of the client do not count.
func (w *Forwarder) Roots() (all []*sdk.Root) {
	for _, name := range w.Server.Roots {
		link := url.URL{Scheme: "file", Path: filepath.ToSlash(w.Folders[name])}
		all = append(all, &sdk.Root{Name: name, URI: link.String()})
	}
	return all
}

func cannot(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + what}
}

// The modes of elicitation.
const (
	modeForm = "form"
	modeURL  = "url" // a page of the server's choice; the client does not see its content
)
