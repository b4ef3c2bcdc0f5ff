package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

func source() provenance.Source {
	return provenance.Source{Kind: provenance.Builtin, Name: "tool/builtin/web"} // policies read the name: it stays
}

// Tools returns the tools. It panics if one of the literals of this package does not
// freeze, which its test would find.
func Tools() []tool.Tool {
	t, err := tool.FromSpec(fetchSpec())
	if err == nil {
		t, err = t.Graded(grades)
	}
	if err != nil {
		panic(err)
	}
	return []tool.Tool{t}
}

type fetchIn struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Key     string            `json:"idempotency_key"`
}

func (i fetchIn) method() string {
	if i.Method == "" {
		return http.MethodGet
	}
	return i.Method
}

func (i fetchIn) request() handle.Request {
	return handle.Request{Method: i.method(), URL: i.URL, Headers: i.Headers, Body: []byte(i.Body), Key: i.Key}
}

func fetchSpec() tool.Spec {
	return tool.Spec{
		Name: "http_fetch", Version: "1", Tags: []string{"web"}, Provenance: source(),
		Description: "Send an HTTP request and read the answer. GET and HEAD read; other methods have an effect that cannot be reverted.",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["url"],"properties":{
			"url":{"type":"string","minLength":1,"description":"Absolute URL of https or http, such as https://api.example.com/v1/items?page=2."},
			"method":{"type":"string","enum":["GET","HEAD","POST","PUT","PATCH","DELETE"],"description":"GET by default."},
			"headers":{"type":"object","additionalProperties":{"type":"string"},"description":"Headers by name. Credentials are added by the runtime."},
			"body":{"type":"string","description":"The body, of other methods than GET and HEAD."},
			"idempotency_key":{"type":"string","minLength":1,"maxLength":255,"description":"Sent as Idempotency-Key, for services that can tell a repeat."}}}`),
		Roles: provenance.Roles{"/body": provenance.Payload},
		Needs: []perm.ResourceAccess{
			perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**"), perm.Access(perm.Use, "secret://*"),
		},
		AccessFor: fetchAccess, EffectClass: effect.Pivot, ClassOf: fetchClass, Confinement: tool.Handles, Destination: tool.ModelChosen,
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
			var in fetchIn
			if err := canon.Decode(raw, &in); err != nil {
				return tool.Result{}, err
			}
			resp, err := handle.Do(ctx, tc, in.request())
			if err != nil {
				return tool.Result{}, err
			}
			return result(in.method(), resp)
		},
	}
}

// fetchAccess is the access of one call, for arguments that a request can be made of.
func fetchAccess(raw json.RawMessage) ([]perm.ResourceAccess, error) {
	var in fetchIn
	if err := canon.Decode(raw, &in); err != nil {
		return nil, err
	}
	to, err := handle.ParseURL(in.URL)
	if err != nil {
		return nil, fmt.Errorf("argument \"url\": %w", err)
	}
	if handle.IsReadMethod(in.method()) && (in.Body != "" || in.Key != "") {
		return nil, fmt.Errorf("arguments \"body\" and \"idempotency_key\" are for other methods than %s", in.method())
	}
	if err := handle.Check(in.request()); err != nil { // of the headers, or the key
		return nil, fmt.Errorf("arguments \"headers\", \"idempotency_key\": %w", err)
	}
	return []perm.ResourceAccess{{Action: perm.Connect, Resource: to.Resource().String(), Method: in.method()}}, nil
}

// fetchClass: what only reads has no effect, although it sends.
func fetchClass(raw json.RawMessage) effect.Class {
	var in fetchIn
	if canon.Decode(raw, &in) == nil && handle.IsReadMethod(in.method()) {
		return effect.Pure
	}
	return effect.Pivot
}

// answer is a response as a model sees it.
type answer struct {
	Status  int               `json:"status"`
	URL     string            `json:"url"` // after redirects
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body,omitempty"`
	Base64  string            `json:"body_base64,omitempty"` // of what is no text
}

// hiddenHeaders say nothing to a model, or too much.
var hiddenHeaders = map[string]bool{"Set-Cookie": true, "Connection": true, "Transfer-Encoding": true, "Content-Encoding": true, "Content-Length": true}

func result(method string, r handle.Response) (tool.Result, error) {
	a := answer{Status: r.Status, URL: r.URL.String(), Headers: map[string]string{}}
	for name, values := range r.Header {
		if !hiddenHeaders[name] {
			a.Headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "�")
		}
	}
	if isText(r) {
		a.Body = string(r.Body)
	} else {
		a.Base64 = base64.StdEncoding.EncodeToString(r.Body)
	}
	raw, err := canon.Marshal(a)
	if err != nil {
		return tool.Result{}, fmt.Errorf("the answer to %s: %w", method, err)
	}
	return tool.Result{JSON: raw, Sources: []provenance.Reference{{URL: r.URL.Resource().String()}}}, nil
}

func isText(r handle.Response) bool {
	if !utf8.Valid(r.Body) {
		return false
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := strings.ToLower(params["charset"]); err != nil || charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return err != nil && !strings.ContainsRune(string(r.Body), 0)
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") || strings.HasSuffix(media, "xml") ||
		strings.HasSuffix(media, "javascript") || strings.HasSuffix(media, "yaml") || media == "application/x-www-form-urlencoded"
}
