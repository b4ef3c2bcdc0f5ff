package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/internal/proof/logintest"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// loginServer is a server by URL that wants a token, and the store of who logs in there.
type loginServer struct {
	*logintest.Server

	t     *testing.T
	store login.Store
}

func newLoginServer(t *testing.T, rules logintest.Rules, behind *sdk.Server) *loginServer {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return behind }, nil)
	d := &loginServer{t: t, Server: logintest.New(t, handler, rules)}
	d.store = login.Store{Folder: filepath.Join(t.TempDir(), "login"), Fix: func(server string) string { return "remit gateway login " + server }}
	return d
}

func (d *loginServer) login() {
	d.t.Helper()
	_, err := d.store.Login(d.t.Context(), config.Server{Name: "s", URL: d.URL}, d.Visit)
	require.NoError(d.t, err)
}

func (d *loginServer) entry() map[string]string {
	return map[string]string{"s": fmt.Sprintf(`{"type": "http", "url": %q}`, d.URL)}
}

func (d *loginServer) authorize(o *gateway.Options) { o.Authorize = d.store.Handler }

const notLoggedIn = "server s needs a login: it requires one, and there is no login; run: remit gateway login s"

// TestLoginIsWanted: a gateway whose server wants a login says so and goes on; once somebody has logged in, it has the server's tools.
func TestLoginIsWanted(t *testing.T) {
	d := newLoginServer(t, logintest.Rules{}, newRequestingServer(""))
	h := newGatewaySetup(t)
	there := make(chan struct{}, 100)
	h.open(d.entry(), requestingTools, d.authorize, func(o *gateway.Options) {
		before := o.OnToolsChanged
		o.OnToolsChanged = func(tools []tool.Tool) {
			if before(tools); h.rt != nil && len(tools) > 0 {
				there <- struct{}{}
			}
		}
	})
	require.Equal(t, []gateway.ServerStatus{{Server: "s", Why: notLoggedIn, Login: true}}, h.gateway.ServerStatuses())
	_, err := h.gateway.Accept(t.Context(), "s", "")
	require.EqualError(t, err, notLoggedIn)
	require.Eventually(t, func() bool { return strings.Contains(h.log.String(), notLoggedIn) }, time.Minute, time.Millisecond)
	d.login()
	_, err = h.gateway.Accept(t.Context(), "s", "")
	require.NoError(t, err, "at once, though it was to rest")
	receive(t, there)
	require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
	require.True(t, h.gateway.ServerStatuses()[0].Connected)
	require.False(t, h.gateway.ServerStatuses()[0].Login)
	require.NoError(t, h.gateway.Close())
}

// TestLoginIsOver: a call that nothing proves any more has failed, and that it did nothing is known; the one after the next login is done.
func TestLoginIsOver(t *testing.T) {
	for name, rules := range map[string]logintest.Rules{"refused": {}, "ended": {Expires: 5}} {
		t.Run(name, func(t *testing.T) {
			d := newLoginServer(t, rules, newRequestingServer(""))
			d.login()
			h := newGatewaySetup(t)
			h.open(d.entry(), `{"s": {"tools": {"echo": {"effectClass": "pivot"}}}}`, d.authorize)
			require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
			d.Revoke()
			out := h.call("s__echo", tool.Args{"word": "w"})
			require.Equal(t, tool.StatusFailed, out.Status, out.Text)
			require.Contains(t, out.Text, "server s needs a login")
			require.Contains(t, out.Text, "run: remit gateway login s")
			d.Now(func(r *logintest.Rules) { r.Status = http.StatusBadGateway })
			d.login503()
			d.Now(func(r *logintest.Rules) { r.Status = 0 })
			d.login()
			require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
			for _, secret := range d.Secrets() {
				require.NotContains(t, h.log.String(), secret)
				require.NotContains(t, out.Text, secret)
			}
			require.NoError(t, h.gateway.Close())
		})
	}
}

// login503 fails, and keeps what there is.
func (d *loginServer) login503() {
	d.t.Helper()
	_, err := d.store.Login(d.t.Context(), config.Server{Name: "s", URL: d.URL}, d.Visit)
	require.Error(d.t, err)
}

// TestLoginNotNow: where the token cannot be renewed for the moment, a call has failed too, whatever class it is of.
func TestLoginNotNow(t *testing.T) {
	d := newLoginServer(t, logintest.Rules{Expires: 5}, newRequestingServer(""))
	d.login()
	h := newGatewaySetup(t)
	h.open(d.entry(), `{"s": {"tools": {"echo": {"effectClass": "pivot"}}}}`, d.authorize)
	d.Now(func(r *logintest.Rules) { r.Status = http.StatusBadGateway })
	out := h.call("s__echo", tool.Args{"word": "w"})
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.NotContains(t, out.Text, "needs a login")
	d.Now(func(r *logintest.Rules) { r.Status = 0 })
	require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
	require.NoError(t, h.gateway.Close())
}

// TestLoginForUndo: an undo that wanted a login is not one that was sent: after the login it is.
func TestLoginForUndo(t *testing.T) {
	d := newLoginServer(t, logintest.Rules{}, newRequestingServer(""))
	d.login()
	h := newGatewaySetup(t)
	h.open(d.entry(), `{"s": {"tools": {"echo": {"undo": {"compensate": {"tool": "echo", "args": {"word": "back"}}}}}}}`, d.authorize)
	tx := h.txn()
	_, err := tx.Invoke(t.Context(), "s__echo", tool.Args{"word": "w"})
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	d.Revoke()
	_, err = h.rt.Revert(t.Context(), tx.ID(), revert.Options{})
	require.ErrorContains(t, err, "not everything was reverted")
	marks, err := os.ReadDir(filepath.Join(h.state, "gateway-undo"))
	require.NoError(t, err)
	require.Empty(t, marks)
	d.login()
	report, err := h.rt.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "reverted", string(report.State))
	require.NoError(t, h.gateway.Close())
}

// TestTokenStaysAtItsURL: a server that redirects does not make the gateway show its token elsewhere, and one whose entry has a header gets that.
func TestTokenStaysAtItsURL(t *testing.T) {
	d := newLoginServer(t, logintest.Rules{}, newRequestingServer(""))
	d.login()
	var shown, proxied atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if shown.Add(1); r.Header.Get("Authorization") != "" {
			proxied.Add(1)
		}
	}))
	t.Cleanup(other.Close)
	h := newGatewaySetup(t)
	h.open(d.entry(), requestingTools, d.authorize)
	require.Equal(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
	d.Now(func(r *logintest.Rules) { r.Lead = other.URL })
	require.NotEqual(t, tool.StatusDone, h.call("s__echo", tool.Args{"word": "w"}).Status)
	require.NoError(t, h.gateway.Close())
	require.Zero(t, shown.Load())

	h = newGatewaySetup(t)
	h.open(map[string]string{"s": fmt.Sprintf(`{"url": %q, "headers": {"authorization": "Bearer mine"}}`, d.URL)}, requestingTools, func(o *gateway.Options) {
		o.Authorize = func(string, string) auth.OAuthHandler {
			t.Error("nobody is to authorize")
			return nil
		}
	})
	seen := d.Seen()
	require.Equal(t, "Bearer mine", seen[len(seen)-1])
	require.False(t, h.gateway.ServerStatuses()[0].Login)
	require.NoError(t, h.gateway.Close())
}
