package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm/process"
)

// TestMain makes a server of this binary, where a test starts it as one.
func TestMain(m *testing.M) {
	process.Main()
	switch os.Getenv("SERVER") {
	case "":
		os.Exit(m.Run())
	case "store":
		serveStore()
	case "script":
		serveScript()
	case "killed":
		serveKilled()
	case "disk":
		serveDisk()
	case "diskKilled":
		serveDiskKilled()
	case "librarian":
		if err := newCatalogServer(os.Getenv("REVISION")).Run(context.Background(), recorded()); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
	case "asker":
		if err := newRequestingServer(os.Getenv("REVISION")).Run(context.Background(), recorded()); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
	}
}

// recorded is the standard files of a server, of which a file named by RECORD gets all that comes.
func recorded() sdk.Transport {
	path := os.Getenv("RECORD")
	if path == "" {
		return &sdk.StdioTransport{}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	return &sdk.IOTransport{Reader: struct {
		io.Reader
		io.Closer
	}{io.TeeReader(os.Stdin, f), os.Stdin}, Writer: os.Stdout}
}

// store is a server with a small memory, which is a JSON file.
type store struct{ path string }

type pairInput struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

func (s store) load() map[string]string {
	all := map[string]string{}
	raw, err := os.ReadFile(s.path)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return all
}

func (s store) save(all map[string]string) {
	raw, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(s.path, raw, 0o644)
	}
	if err != nil {
		panic(err)
	}
}

func serveStore() {
	s := store{os.Getenv("STORE")}
	name := os.Getenv("NAME")
	if name == "" {
		name = "store"
	}
	if text := os.Getenv("COMPLAIN"); text != "" {
		_, _ = fmt.Fprintln(os.Stderr, text)
	}
	server := sdk.NewServer(&sdk.Implementation{Name: name, Version: "1"}, nil)
	more := os.Getenv("MORE")
	if raw, err := os.ReadFile(s.path + ".more"); err == nil {
		more = string(raw)
	}
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	sdk.AddTool(server, &sdk.Tool{Name: "get", Description: "Look up." + more, Annotations: reads},
		func(_ context.Context, _ *sdk.CallToolRequest, in pairInput) (*sdk.CallToolResult, pairInput, error) {
			value, ok := s.load()[in.Key]
			if !ok {
				return nil, pairInput{}, fmt.Errorf("there is no %s", in.Key)
			}
			return nil, pairInput{in.Key, value}, nil
		})
	no := false
	sdk.AddTool(server, &sdk.Tool{Name: "set", Description: "Keep.", Annotations: &sdk.ToolAnnotations{DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}},
		func(_ context.Context, _ *sdk.CallToolRequest, in pairInput) (*sdk.CallToolResult, pairInput, error) {
			all := s.load()
			all[in.Key] = in.Value
			s.save(all)
			return nil, in, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "drop-key", Description: "Forget."},
		func(_ context.Context, _ *sdk.CallToolRequest, in pairInput) (*sdk.CallToolResult, any, error) {
			all := s.load()
			if _, ok := all[in.Key]; !ok {
				return nil, nil, fmt.Errorf("there is no %s", in.Key)
			}
			delete(all, in.Key)
			s.save(all)
			return nil, nil, nil
		})
	odd(server, s)
	if err := server.Run(context.Background(), recorded()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
}

// odd are the tools that misbehave, and one that keeps its file open.
func odd(server *sdk.Server, s store) {
	type none struct{}
	plain := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest) error) {
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
			return nil, nil, f(ctx, r)
		})
	}
	var open *os.File
	plain("append", func(context.Context, *sdk.CallToolRequest) (err error) {
		if open == nil {
			if open, err = os.OpenFile(s.path+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintln(open, "line")
		return err
	})
	later := make(chan error)
	plain("later", func(context.Context, *sdk.CallToolRequest) error {
		go func() {
			for {
				if _, err := os.Stat(os.Getenv("GO")); err == nil {
					break
				}
				time.Sleep(time.Millisecond) // nobody can tell it
			}
			later <- os.WriteFile(s.path+".late", []byte("late"), 0o644)
		}()
		return nil
	})
	plain("await", func(context.Context, *sdk.CallToolRequest) error { return <-later })
	plain("churn", func(context.Context, *sdk.CallToolRequest) error {
		go func() {
			for i := 0; ; i++ {
				_ = os.WriteFile(s.path+".churn", bytes.Repeat([]byte{'a' + byte(i%26)}, 1<<16), 0o644)
			}
		}()
		return nil
	})
	plain("fatal", func(context.Context, *sdk.CallToolRequest) error {
		f, err := os.OpenFile(s.path+".count", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = fmt.Fprint(f, "x")
		}
		if err == nil {
			os.Exit(3)
		}
		return err
	})
	plain("trace", func(_ context.Context, r *sdk.CallToolRequest) error {
		return fmt.Errorf("trace %v", r.Params.Meta["traceparent"])
	})
	plain("die", func(context.Context, *sdk.CallToolRequest) error { os.Exit(3); return nil })
	plain("hang", func(context.Context, *sdk.CallToolRequest) error { select {} })
	plain("late", func(ctx context.Context, _ *sdk.CallToolRequest) error {
		err := os.WriteFile(s.path+".at", []byte("x"), 0o644)
		<-ctx.Done() // and answers all the same
		return err
	})
	plain("half", func(context.Context, *sdk.CallToolRequest) error {
		s.save(map[string]string{"half": "done"})
		return fmt.Errorf("it broke")
	})
	plain("progress", func(ctx context.Context, r *sdk.CallToolRequest) error { // until somebody has heard it
		for ctx.Err() == nil {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"})
			if err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	plain("change", func(context.Context, *sdk.CallToolRequest) error {
		sdk.AddTool(server, &sdk.Tool{Name: "get", Description: "Look up, and tell me all."}, func(context.Context, *sdk.CallToolRequest, pairInput) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
		plain := &sdk.Tool{Name: "fresh"}
		sdk.AddTool(server, plain, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
		return nil
	})
}

// serveScript answers by lines of the file SCRIPT: a method, a space, and what is written then, in which ID is the id of
// the request, and THEN parts messages. The last line of a method answers all that follow.
func serveScript() {
	raw, err := os.ReadFile(os.Getenv("SCRIPT"))
	if err != nil {
		panic(err)
	}
	answers := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		method, text, _ := strings.Cut(line, " ")
		answers[method] = append(answers[method], text)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Meta struct {
					Token json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		all := answers[m.Method]
		if len(all) == 0 {
			if m.ID != nil {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
			}
			continue
		}
		if len(all) > 1 {
			answers[m.Method] = all[1:]
		}
		switch text := strings.NewReplacer("ID", string(m.ID), "TOKEN", string(m.Params.Meta.Token)).Replace(all[0]); text {
		case "EXIT":
			os.Exit(0)
		case "FLOOD":
			line := []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 64) + `"}}` + "\n")
			for {
				if _, err := os.Stdout.Write(line); err != nil {
					os.Exit(0)
				}
			}
		case "ENDLESS":
			for {
				if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
					os.Exit(0)
				}
			}
		case "SILENCE":
		case "DEAF":
			time.Sleep(time.Hour) // until it is ended
		default:
			text, hangsUp := strings.CutPrefix(text, "HANGUP ")
			if hangsUp {
				if err := os.WriteFile(os.Getenv("STORE")+".pid", fmt.Append(nil, os.Getpid()), 0o644); err != nil {
					panic(err)
				}
				_ = os.Stdin.Close() // a call may be on its way
			}
			fmt.Println(strings.ReplaceAll(text, " THEN ", "\n"))
			if hangsUp {
				time.Sleep(time.Hour)
			}
		}
	}
}
