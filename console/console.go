package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/remit-dev/remit/agent"
)

// Options configures a Console. Runtime, Host and By are required.
type Options struct {
	// Runtime has the journal that the pages show. Its tools tell which
	// arguments are sensitive.
	Runtime *agent.Runtime
	// Host is the name and the port in the address of the pages, such as
	// remit-4f2a.localhost:8321. Requests with another host are refused. A
	// browser sends a cookie to every port of a host, so a name that no other
	// server has keeps the cookie from them.
	Host string
	// By names the person in the records of answers and reverts.
	By string
	// Title is the heading of the pages, such as the name of the workspace.
	Title string
	// CheckApproval returns an error if the person must not approve a call or
	// the commit of a transaction here. Id names it, and askers are the
	// processes that asked, as the record of the request has them. Nil: the
	// pages approve nothing.
	CheckApproval func(ctx context.Context, id string, askers []json.RawMessage) error
	// Explain explains in a text why a policy decides about a call as it does,
	// and which change of the policy lets it through. Nil: the pages show what
	// the records say.
	Explain func(ctx context.Context, call string) (string, error)
	// Diagnose checks the machine, the roots and the journal. It can take
	// seconds. Nil: the page of health has no checks.
	Diagnose func(ctx context.Context) ([]Check, error)
	// EndPrompts ends the prompts that a coding agent still works on, so that
	// they can be reverted. Nil: nothing has to be ended.
	EndPrompts func(ctx context.Context) error
	// Hint returns the command line that does the same as a page. Nil: the
	// pages show no commands.
	Hint func(args ...string) string
	// Folders are the folders of roots that were moved, by their names. The
	// other roots are where the records say.
	Folders map[string]string
	// Now returns the current time. Nil: time.Now.
	Now func() time.Time
	// Random fills a slice with random bytes that are fit for secrets. Nil: the
	// generator of the system.
	Random func([]byte)
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	Options
	access  *access
	handler http.Handler
	done    chan struct{} // closed when Serve ends: streams end
	end     sync.Once
	streams chan struct{} // slots of streams
	reports reports

	diagnosis diagnosis

	decoding sync.Mutex // held while one image is decoded
}

// maxStreams limits the pages that get live updates at once.
const maxStreams = 16

// New returns a console. It returns an error if a required option is missing.
func New(o Options) (*Console, error) {
	switch name, port, found := strings.Cut(o.Host, ":"); {
	case o.Runtime == nil:
		return nil, errors.New("console: Options.Runtime is nil")
	case !found || name == "" || !isPort(port):
		return nil, errors.New("console: Options.Host must be a name and a port, such as 127.0.0.1:8321")
	case o.By == "":
		return nil, errors.New("console: Options.By is empty: the records name the person")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = func(p []byte) { _, _ = rand.Read(p) } // it never fails
	}
	c := &Console{Options: o, access: newAccess(o.Now, o.Random), done: make(chan struct{}), streams: make(chan struct{}, maxStreams)}
	c.reports.byID = map[string]reportPage{}
	c.handler = c.guard(c.routes())
	return c, nil
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n < 1<<16 && strconv.Itoa(n) == text
}

// EntryURL returns an address that opens the pages once, within ten minutes. A
// person opens it in a browser. The secret part is behind #, which a browser
// does not send: the page there exchanges it for a cookie.
func (c *Console) EntryURL() string { return "http://" + c.Host + "/enter#" + c.access.newToken() }

// Handler returns the handler of all pages, with their access control.
func (c *Console) Handler() http.Handler { return c.handler }
