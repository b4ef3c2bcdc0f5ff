package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// The built-in tools, with their effect class, confinement and whether they
// verify their calls.
func Example() {
	for _, t := range slices.Concat(builtin.Files(), builtin.Programs(), builtin.Databases(), builtin.Web()) {
		fmt.Println(t.Name(), t.Class(), t.Spec().Confinement, t.CanVerify())
	}
	// Output:
	// file_read pure handles false
	// file_list pure handles false
	// file_search pure handles false
	// file_write reversible handles true
	// file_edit reversible handles true
	// file_delete reversible handles true
	// file_move reversible handles true
	// file_copy reversible handles true
	// dir_create reversible handles true
	// process_run reversible sandbox true
	// shell_run reversible sandbox true
	// sql_query pure handles false
	// sql_execute reversible handles true
	// http_fetch pivot handles false
}

// A tool that runs one program, sees one folder and changes nothing: it needs no Verify
// and no Revert of its own.
func ExampleProgramTool() {
	count, err := builtin.ProgramTool(tool.Spec{
		Name: "count_lines", Description: "Count the lines of a file in notes.",
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
		Needs: []perm.ResourceAccess{perm.Access(perm.Execute, "exec://wc"), perm.Access(perm.Read, "file://workspace/notes/**")},
	}, func(in json.RawMessage) (process.Cmd, error) {
		var args struct{ Name string }
		err := json.Unmarshal(in, &args)
		return process.Cmd{Argv: []string{"wc", "-l", "--", "notes/" + args.Name}}, err
	})
	fmt.Println(count.Name(), count.Facts().Confinement, count.Class(), err)
	// Output: count_lines sandbox reversible <nil>
}

// A tool of a pair of requests: POST creates an item, and DELETE reverts the
// call.
func ExampleHTTPTool() {
	items := map[string]bool{}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Path[len("/items"):]
		switch {
		case r.Method == http.MethodPost:
			items["/1"], id = true, "/1"
		case !items[id]:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodDelete:
			delete(items, id)
		}
		w.Header().Set("ETag", `"first"`)
		_, _ = fmt.Fprintf(w, `{"id":%q}`, id[1:])
	}))
	defer shop.Close()
	report, err := orderAndRevert(context.Background(), shop.URL, shop.Listener.Addr().String(), items)
	fmt.Println(report.State, items, err)
	// Output:
	// done applied map[/1:true]
	// reverted map[] <nil>
}

func orderAndRevert(ctx context.Context, url, address string, items map[string]bool) (r revert.Report, err error) {
	order, err := builtin.HTTPTool(builtin.HTTPCall{
		Name: "order_create", Description: "Order something.", Method: "POST", URL: url + "/items",
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
		Keyed: true, Undo: &web.Compensation{Item: url + "/items/{id}"},
	})
	if err != nil {
		return r, err
	}
	network, err := web.ParseNetwork(address)
	if err != nil {
		return r, err
	}
	client, err := web.New(web.Options{Allow: []web.Network{network}})
	if err != nil {
		return r, err
	}
	rt, err := agent.New(agent.Tools(order), agent.Driver(client), agent.Policy(perm.EngineFunc(allowAll)), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		return r, err
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		return r, err
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "order_create", tool.Args{"name": "tea"})
		fmt.Println(out.Status, out.Verdict.Presence, items)
		return err
	})
	if err != nil {
		return r, err
	}
	return s.Revert(ctx, id, revert.Options{})
}

func allowAll(context.Context, perm.Request) (perm.Decision, error) {
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "the example allows all"}}}), nil
}
