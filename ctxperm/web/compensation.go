package web

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
)

// schemeName is the scheme of changes that requests make.
const schemeName = "http"

// Compensation describes, as data, how the effect of a request is reverted: by
// another request to the item that it made or changed. It is on the journal
// before the effect, and works in another process that has a Client.
//
// Its URLs belong to the origin of the request. {member}, or {a.b} for a nested
// member, is a text or a number of the response, as one segment of a path or
// one value of a query.
type Compensation struct {
	// Item is the URL of the item that the request makes or changes; empty: the
	// request's own. A GET of it returns its version, by ETag and body.
	Item string `json:"item,omitempty"`
	// Find is a GET that returns what the request's key made, with {key} for
	// the key: an object, a list of at most one, or 404. It finds an effect
	// whose response was lost, if Item has parameters.
	Find string `json:"find,omitempty"`
	// FindIn is the path of the object or list in that response, such as data.
	FindIn string `json:"find_in,omitempty"`
	// Replays states that the service repeats its first response to a known
	// key, without a second effect. If an effect cannot be found otherwise, a
	// revert after a lost response sends the same request again.
	Replays bool `json:"replays,omitempty"`
	// Method is the method of the request to URL that reverts the effect;
	// empty: DELETE, to Item.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	// Before sends the previous content of Item as the body, instead of Body
	// and Headers.
	Before  bool              `json:"before,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// The versions of a sent request without another version.
const (
	unsent effect.Token = "unsent"
	sent   effect.Token = "sent"
)

// inverse is the stored inverse of a change of this scheme.
type inverse struct {
	Method string        `json:"method"`
	URL    string        `json:"url"`
	Key    string        `json:"key,omitempty"`
	Sent   time.Time     `json:"sent"`
	Undo   *Compensation `json:"undo,omitempty"`
	Item   string        `json:"item,omitempty"` // the item of the change; empty: unknown before the response
	Back   string        `json:"back,omitempty"` // URL of the compensation
	Made   bool          `json:"made,omitempty"` // an earlier change of the call made the item, and its response names it
	Media  string        `json:"media,omitempty"`
	// Holds are digests of the members that were sent, to compare them with the
	// item. The stored form must not reveal what the policy redacts of a call.
	Holds map[string]string `json:"holds,omitempty"`
	// Again is the request for a service that accepts a repeated key.
	Again *replayRequest `json:"again,omitempty"`
	// Will is the request of a counter-change.
	Will *replayRequest `json:"will,omitempty"`
}

// replayRequest is a request as data, without its credential.
type replayRequest struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
}

func (u *Compensation) method() string {
	if u.Method == "" {
		return http.MethodDelete
	}
	return u.Method
}

// check refuses a compensation that could not be performed.
func (u *Compensation) check(to Target) error {
	if u == nil {
		return nil
	}
	if u.method() != http.MethodDelete && u.method() != http.MethodPut && u.method() != http.MethodPatch && u.method() != http.MethodPost {
		return fmt.Errorf("%w compensation: method %q must be DELETE, PUT, PATCH or POST", ctxperm.ErrInvalid, u.Method)
	}
	if _, err := headersOf(u.Headers); err != nil {
		return fmt.Errorf("compensation: %w", err)
	}
	if u.Before && len(u.Body) > 0 {
		return fmt.Errorf("%w compensation: Before and Body exclude each other", ctxperm.ErrInvalid)
	}
	if u.open() && u.Item == "" {
		return fmt.Errorf("%w compensation: Item must name what the request creates", ctxperm.ErrInvalid)
	}
	if u.open() && u.Before {
		return fmt.Errorf("%w compensation: an item that the response names has no content for Before", ctxperm.ErrInvalid)
	}
	if u.URL != "" && u.Before {
		return fmt.Errorf("%w compensation: Before sends to the item itself, so URL must be empty", ctxperm.ErrInvalid)
	}
	for _, text := range []string{u.Item, u.Find, u.URL} {
		if text == "" {
			continue
		}
		filled, err := fill(text, func(string) (string, bool) { return "x", true })
		var t Target
		if err == nil {
			t, err = ParseURL(filled)
		}
		if err == nil && t.origin() != to.origin() {
			err = fmt.Errorf("%w URL: it is at another origin than the request", ctxperm.ErrInvalid)
		}
		if err != nil {
			return fmt.Errorf("compensation: %w", err)
		}
	}
	return nil
}

// open reports whether the response determines the item.
func (u *Compensation) open() bool { return strings.Contains(u.Item+u.URL, "{") }

// fill puts values into the {names} of a URL, each escaped for its place.
func fill(text string, get func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	escape := url.PathEscape
	for {
		before, rest, found := strings.Cut(text, "{")
		if strings.Contains(before, "?") {
			escape = url.QueryEscape
		}
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, found := strings.Cut(rest, "}")
		if !found || name == "" {
			return "", fmt.Errorf("%w URL: a { without its name and }", ctxperm.ErrInvalid)
		}
		value, ok := get(name)
		if !ok || value == "" {
			return "", fmt.Errorf("there is no text or number %q to put into the URL", name)
		}
		b.WriteString(escape(value))
		text = after
	}
}

// member returns a text or number in a JSON document by a dotted path.
func member(doc any, path string) (string, bool) {
	for _, name := range strings.Split(path, ".") {
		object, ok := doc.(map[string]any)
		if !ok {
			return "", false
		}
		doc = object[name]
	}
	switch v := doc.(type) {
	case string:
		return v, v != ""
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// decode parses the JSON of a response and keeps its numbers as written.
func decode(body []byte) (doc any, err error) {
	v, err := canon.Parse(body, canon.DefaultLimits())
	if err != nil {
		return nil, errors.New("the answer is not JSON")
	}
	dec := json.NewDecoder(strings.NewReader(string(v.Canonical())))
	dec.UseNumber()
	err = dec.Decode(&doc)
	return doc, err
}

// compensationTarget is the item of a revert, and the URL of the compensation.
type compensationTarget struct{ item, back Target }

// goalOf reads the target from a response.
func (u *Compensation) goalOf(body []byte, to Target) (compensationTarget, error) {
	doc, err := decode(body)
	if err != nil {
		return compensationTarget{}, err
	}
	return u.goalIn(doc, to)
}

func (u *Compensation) goalIn(doc any, to Target) (g compensationTarget, err error) {
	filled := func(text string) (Target, error) {
		text, err := fill(text, func(name string) (string, bool) { return member(doc, name) })
		if err != nil {
			return Target{}, err
		}
		t, err := ParseURL(text)
		if err == nil && t.origin() != to.origin() {
			err = errors.New("it is at another origin")
		}
		return t, err
	}
	g.item = to
	if u.Item != "" {
		if g.item, err = filled(u.Item); err != nil {
			return g, err
		}
	}
	g.back = g.item
	if u.URL != "" {
		g.back, err = filled(u.URL)
	}
	return g, err
}

func (inv inverse) goal() (g compensationTarget, err error) {
	if g.item, err = ParseURL(inv.Item); err == nil {
		g.back = g.item
		if inv.Back != "" {
			g.back, err = ParseURL(inv.Back)
		}
	}
	return g, err
}

// found parses the response of Find: the one object that the key made, or none.
func (u *Compensation) found(body []byte) (object any, there bool, err error) {
	doc, err := decode(body)
	if err != nil {
		return nil, false, err
	}
	if u.FindIn != "" {
		for _, name := range strings.Split(u.FindIn, ".") {
			object, ok := doc.(map[string]any)
			if !ok {
				return nil, false, fmt.Errorf("the answer has no member %q", u.FindIn)
			}
			doc = object[name]
		}
	}
	switch v := doc.(type) {
	case nil:
		return nil, false, nil
	case map[string]any:
		return v, true, nil
	case []any:
		if len(v) > 1 {
			return nil, false, fmt.Errorf("the key is said to have made %d things", len(v))
		}
		return slices.Concat(v, []any{nil})[0], len(v) == 1, nil
	}
	return nil, false, errors.New("the answer is neither an object nor a list")
}

// version is the result of a GET of an item. Two versions are the same if their
// ETags or their contents are. A service gives a restored item a new ETag.
type version struct {
	etag, digest string
	there        bool
	media        string
	body         []byte
}

// versionOf returns the version of an item from a response.
func versionOf(r Response) (version, error) {
	switch {
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		return version{}, nil
	case !r.OK():
		return version{}, fmt.Errorf("the service answered %d", r.Status)
	}
	v := version{there: true, etag: r.Header.Get("Etag"), media: r.Header.Get("Content-Type"), body: r.Body}
	content := r.Body
	if parsed, err := canon.Parse(content, canon.DefaultLimits()); err == nil {
		content = parsed.Canonical()
	}
	v.digest = fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	return v, nil
}

func (v version) token() effect.Token {
	switch {
	case !v.there:
		return effect.Absent
	case v.etag == "":
		return effect.Token(v.digest)
	default:
		return effect.Token(v.digest + " etag " + v.etag)
	}
}

// is reports whether v is the version of a token.
func (v version) is(t effect.Token) bool {
	if !t.Known() || t == effect.Absent || !v.there {
		return v.token().Same(t)
	}
	digest, etag, _ := strings.Cut(string(t), " etag ")
	return digest == v.digest || v.strong() && etag == v.etag
}

// holds reports whether v is a JSON object with every member of another one,
// with the same values. Then v can be the sent object.
func (v version) holds(sent map[string]string) bool {
	have := members(v.body)
	for name, digest := range sent {
		if have[name] != digest {
			return false
		}
	}
	return v.there && len(sent) > 0
}

// differs reports whether v has a sent member with another value. This detects
// a change of an item that only a key identifies, because its first version was
// never read.
func (v version) differs(sent map[string]string) bool {
	have := members(v.body)
	for name, digest := range sent {
		if now, there := have[name]; there && now != digest {
			return true
		}
	}
	return false
}

// members returns the digests of the members of a JSON object by name, or none.
func members(body []byte) map[string]string {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	out := map[string]string{}
	for name, value := range all {
		if text, err := canon.Canonicalize(value, canon.DefaultLimits()); err == nil {
			out[name] = string(canon.Sum("remit/http-member/v1", []byte(name), text))
		}
	}
	return out
}

// strong reports whether the service can detect a concurrent change.
func (v version) strong() bool { return v.etag != "" && !strings.HasPrefix(v.etag, "W/") }
