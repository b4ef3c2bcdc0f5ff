package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// A program serves the pages of its own runtime. Without the cookie that the
// one-time address is exchanged for, a request sees nothing.
func Example() {
	ctx := context.Background()
	upper, err := tool.Create("upper", "Upper-case a text.", func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(upper), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	if _, err := s.Call(ctx, "upper", "hi"); err != nil {
		panic(err)
	}
	c, err := console.New(console.Options{Runtime: rt, Host: "127.0.0.1:8321", By: "ann"})
	if err != nil {
		panic(err)
	}
	address, _, _ := strings.Cut(c.EntryURL(), "#")
	fmt.Println(address)

	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8321/", nil)
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "upper"))
	// Output:
	// http://127.0.0.1:8321/enter
	// 401 false
}
