package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/tool/wire"
)

func main() {
	dir, err := os.MkdirTemp("", "remit-shop-")
	if err == nil {
		err = run(context.Background(), os.Stdout, dir)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run has a scripted model answer in place of a provider.
func run(ctx context.Context, out io.Writer, dir string) error {
	if err := os.WriteFile(dir+"/note.txt", []byte("Order tea when it is low.\n"), 0o600); err != nil {
		return err
	}
	call := func(name, args string) fakemodel.Call { return fakemodel.Call{Tool: name, Args: args} }
	model, err := fakemodel.New(string(wire.Anthropic),
		fakemodel.Turn{Calls: []fakemodel.Call{call("read_note", `{}`), call("list", `{}`), call("count", `{"name":"tea"}`)}},
		fakemodel.Turn{Calls: []fakemodel.Call{call("order", `{"name":"tea","pieces":500}`)}},
		fakemodel.Turn{Calls: []fakemodel.Call{call("order", `{"name":"tea","pieces":9}`), call("write_note", `{"text":"Tea is ordered.\n"}`)}},
		fakemodel.Turn{Text: "I ordered nine packets of tea. I may not order more."},
	)
	if err != nil {
		return err
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = model.Answer(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body)
	}))
	defer provider.Close()
	answer, err := (&shop{stock: map[string]int{"tea": 2, "milk": 40}}).answer(ctx, dir, provider.URL, "What is low? Do as the note says.")
	if err != nil {
		return err
	}
	for _, told := range model.Received() {
		_, _ = fmt.Fprintf(out, "%s: %s\n", told.Tool, told.Text)
	}
	_, err = fmt.Fprintln(out, answer)
	return err
}
