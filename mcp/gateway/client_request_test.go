package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// requestPolicy decides questions of servers as it says, and lets everything else run.
type requestPolicy struct {
	mu       sync.Mutex // never held across a wait
	received []string
	says     func() (perm.Decision, error)
}

func (q *requestPolicy) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Access.Action != perm.AskClient {
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.received = append(q.received, r.Tool.Name+" "+r.Access.Resource.Text)
	if !r.Access.Dynamic {
		q.received = append(q.received, "before the call")
	}
	return q.says()
}

func deny() (perm.Decision, error) {
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: "none of its business"}}}), nil
}

// TestPolicyDecidesWhatServersAsk: what a server asks its client is an access of the call, which the policy is asked for when it is
// asked. Refused, nobody hears of it, the server is told that and no more, the call goes on, and the journal has it.
func TestPolicyDecidesWhatServersAsk(t *testing.T) {
	for name, says := range map[string]func() (perm.Decision, error){
		"denied":          deny,
		"nobody approves": func() (perm.Decision, error) { return perm.NewDecision(perm.Ask, perm.Details{}), nil },
		"no decision":     func() (perm.Decision, error) { return perm.Decision{}, nil },
		"broken": func() (perm.Decision, error) {
			return perm.NewDecision(perm.Allow, perm.Details{}), errors.New("broken")
		},
	} {
		for _, upstream := range []string{modern, legacy} {
			t.Run(name+"/"+upstream, func(t *testing.T) {
				h := newGatewaySetup(t)
				q := &requestPolicy{says: says}
				h.policy = q
				h.open(map[string]string{"s": h.near(upstream)}, requestingTools)
				cs := h.client(h.serve(), legacy, "Ann", func(text string) { t.Errorf("asked: %s", text) })
				for _, tool := range []string{"person", "model"} {
					r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "s__" + tool, Arguments: map[string]any{"word": "w"}})
					require.NoError(t, err)
					if upstream == legacy {
						if name != "broken" { // of which nothing is shown at all
							require.Contains(t, firstText(t, r), "w: refused -32600 the client may not be asked for ")
						}
						require.NotContains(t, firstText(t, r), "none of its business", "the server reads that")
						require.Equal(t, "done", r.Meta["remit.dev/status"])
					} else {
						require.True(t, r.IsError, "the server wants an answer or nothing")
						require.Equal(t, "failed", r.Meta["remit.dev/status"])
					}
				}
				require.Equal(t, []string{"s_person mcp://s/elicitation/form", "s_model mcp://s/sampling/text"}, slices.Compact(named(q.received)))
				require.Equal(t, []string{
					`[{"answer":"denied","method":"elicitation/create"}]`, `[{"answer":"denied","method":"sampling/createMessage"}]`,
				}, h.notes("asked"))
			})
		}
	}
}

// named leaves the digests out that names of tools may end with.
func named(all []string) (out []string) {
	for _, text := range all {
		name, rest, _ := strings.Cut(text, " ")
		parts := strings.Split(name, "_")
		out = append(out, "s_"+parts[len(parts)-1]+" "+rest)
	}
	return out
}

// TestPolicyIsAskedOnceEach: of a call that may ask each way of asking is decided once, and only when it asks.
func TestPolicyIsAskedOnceEach(t *testing.T) {
	h := newGatewaySetup(t)
	q := &requestPolicy{says: func() (perm.Decision, error) { return perm.NewDecision(perm.Allow, perm.Details{}), nil }}
	h.policy = q
	h.open(map[string]string{"s": h.near(legacy)}, requestingTools)
	cs := h.client(h.serve(), legacy, "Ann", func(string) {})
	for _, tool := range []string{"echo", "person", "folders"} {
		_, err := ask(t.Context(), cs, tool, "w")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"s_person mcp://s/elicitation/form"}, named(q.received))
}

// TestNobodySaysWhatServersMayAsk: where the configuration says nothing, a person may be asked and a model may not.
func TestNobodySaysWhatServersMayAsk(t *testing.T) {
	for _, upstream := range []string{modern, legacy} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.near(upstream)}, strings.Replace(requestingTools, `"asks": ["elicitation", "sampling"], `, "", 1))
		cs := h.client(h.serve(), legacy, "Ann", func(text string) { require.Equal(t, "Server s asks: who? w", text) })
		got, err := ask(t.Context(), cs, "person", "w")
		require.NoError(t, err)
		require.Equal(t, "w: accept Ann", got)
		got, err = ask(t.Context(), cs, "model", "w")
		require.True(t, err != nil || strings.Contains(got, "cannot") || strings.Contains(got, "refused -32601"), got)
	}
}

// reader is a client that can show a page, and notes which.
func (h *gatewaySetup) reader(revision string, can *sdk.ElicitationCapabilities, pages *[]string) *sdk.ClientSession {
	return h.connect(h.serve(), revision, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: can},
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			*pages = append(*pages, strings.Join([]string{r.Params.Mode, r.Params.URL, r.Params.ElicitationID, r.Params.Message}, " "))
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	})
}

// TestServersAskByAPage: a page that a server wants to be opened reaches a client that can show one, in the server's name; one that
// cannot is not asked, and the server is told so; and so is one whose page nobody could tell where it leads.
func TestServersAskByAPage(t *testing.T) {
	both := &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	page := &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}
	form := &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
	for _, upstream := range []string{modern, legacy} {
		for _, revision := range []string{modern, legacy} {
			t.Run(upstream+"/"+revision, func(t *testing.T) {
				h := newGatewaySetup(t)
				h.open(map[string]string{"s": h.near(upstream)}, requestingTools)
				const good = "https://pages.example/connect?id=7"
				for _, can := range []*sdk.ElicitationCapabilities{both, page} {
					var pages []string
					got, err := ask(t.Context(), h.reader(revision, can, &pages), "page", good)
					require.NoError(t, err)
					require.Contains(t, got, good+": accept")
					require.Equal(t, []string{"url " + good + " e1 Server s asks: see this"}, pages)
				}
				refused := func(can *sdk.ElicitationCapabilities, link, why string) {
					var pages []string
					got, err := ask(t.Context(), h.reader(revision, can, &pages), "page", link)
					if upstream == legacy {
						require.NoError(t, err)
						require.Contains(t, got, "refused -32602")
						require.Contains(t, got, why)
					} else {
						require.ErrorContains(t, err, why)
					}
					require.Empty(t, pages)
				}
				refused(form, good, `does not support elicitation of mode "url"`)
				refused(&sdk.ElicitationCapabilities{}, good, `does not support elicitation of mode "url"`)
				for link, why := range map[string]string{
					"http://pages.example/":                               "https",
					"javascript:alert(1)":                                 "is none",
					"https:pages.example":                                 "is none",
					"https://":                                            "is none",
					"file:///etc/passwd":                                  "is none",
					"https://bank.example@pages.example/":                 "names a user",
					"https://pages.example/\u202egpj.exe":                 "is none",
					"https://pages.example/" + strings.Repeat("a", 9<<10): "at most",
				} {
					refused(both, link, why)
				}
			})
		}
	}
}

// TestAPageIsWantedFirst: the error by which a server says that a page has to be opened first reaches a client that can show pages, in
// the server's name, and is an error like any other for who cannot, or where the policy does not want it.
func TestAPageIsWantedFirst(t *testing.T) {
	wants := func(list string) string {
		return `{"code":-32042,"message":"look","data":{"elicitations":[` + list + `]}}`
	}
	const one = `{"mode":"url","elicitationId":"1","url":"https://x.example/","message":"go"}`
	both := &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	for name, tt := range map[string]struct {
		text   string
		can    *sdk.ElicitationCapabilities
		denied bool
		want   string
	}{
		"can":        {wants(one), both, false, ""},
		"cannot":     {wants(one), &sdk.ElicitationCapabilities{}, false, "does not support"},
		"nobody":     {wants(one), nil, false, "does not support"},
		"denied":     {wants(one), both, true, "none of its business"},
		"no page":    {wants(`{"mode":"form","message":"go"}`), both, false, "not by a URL"},
		"nowhere":    {wants(`{"mode":"url","elicitationId":"1","url":"http://x.example/","message":"go"}`), both, false, "https"},
		"none":       {wants(""), both, false, "does not say which"},
		"of no form": {`{"code":-32042,"message":"look","data":"x"}`, both, false, "does not say which"},
		"many":       {wants(strings.TrimSuffix(strings.Repeat(one+",", 33), ",")), both, false, "does not say which"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGatewaySetup(t)
			if tt.denied {
				h.policy = &requestPolicy{says: deny}
			}
			h.open(map[string]string{"s": h.scripted(oneTool, `tools/call {"jsonrpc":"2.0","id":ID,"error":`+tt.text+`}`)}, `{"s": {"tools": {"x": {"effectClass": "pure"}}}}`)
			cs := h.connect(h.serve(), legacy, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{Elicitation: tt.can}})
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "s__x"})
			if tt.want != "" {
				require.NoError(t, err)
				require.True(t, r.IsError)
				require.Contains(t, firstText(t, r), tt.want)
				require.NotContains(t, firstText(t, r), "x.example")
				return
			}
			var said *jsonrpc.Error
			require.ErrorAs(t, err, &said)
			require.EqualValues(t, sdk.CodeURLElicitationRequired, said.Code)
			var data struct{ Elicitations []sdk.ElicitParams }
			require.NoError(t, json.Unmarshal(said.Data, &data))
			require.Equal(t, "Server s asks: go", data.Elicitations[0].Message)
			require.Equal(t, "https://x.example/", data.Elicitations[0].URL)
			require.Equal(t, []string{`[{"method":"elicitation/create"}]`}, h.notes("asked"))
		})
	}
}
