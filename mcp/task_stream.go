package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/rawresult"
)

// A client that listens is told how its tasks stand, on the stream that it opened. The SDK knows neither the ids among what a
// client wants to hear of nor the notification: so the ids come to us in _meta, see stream.go, and the notification goes out by the
// line of the request.

const (
	methodListen    = "subscriptions/listen"
	notifyTasks     = "notifications/tasks"
	metaListenTasks = "remit.dev/listen-tasks" // in _meta of what the SDK is given
	mostListened    = 16                       // tasks of one stream
)

// taskStream is one stream on which a client is told of tasks.
type taskStream struct {
	c       *call
	line    notifier
	ids     []string // of tasks of the session
	session *sdk.ServerSession
	all     sync.WaitGroup
}

type listenKey struct{}

// mayListen refuses to tell of tasks whoever does not know them, and of too many.
func mayListen(c *call, ids []string) error {
	switch {
	case len(ids) > 0 && !c.clientSupportsTasks():
		return errTasksUnsupported()
	case len(ids) > mostListened:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("taskIds has %d tasks; one stream tells of at most %d", len(ids), mostListened)}
	}
	return nil
}

// listens finds the tasks that a request wants to hear of. It is nil where there are none.
func (s *Server) listens(ctx context.Context, req *sdk.SubscriptionsListenRequest) (*taskStream, error) {
	wanted, _ := req.Params.Meta[metaListenTasks].([]any)
	if len(wanted) == 0 {
		return nil, nil
	}
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	c := &call{s: s, st: st, caps: req.ClientCapabilities(), client: req.ClientInfo(), revision: req.ProtocolVersion(), slot: &rawresult.Slot{}}
	l := &taskStream{c: c, session: req.Session}
	var ids []string
	for _, one := range wanted {
		id, _ := one.(string)
		ids = append(ids, id)
	}
	if err := mayListen(c, ids); err != nil {
		return nil, err
	}
	if l.line = notifierOf(ctx, req.Extra); l.line == nil {
		return nil, nil
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if _, err := s.recorded(ctx, id, st); err == nil { // what is not there, or another session's, is not agreed to
			l.ids = append(l.ids, id)
		}
	}
	return l, nil
}

// attend has the SDK do its part of the request, and keeps it for as long as the client listens.
func (l *taskStream) attend(ctx context.Context, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	ctx, stop := context.WithCancel(context.WithValue(ctx, listenKey{}, l))
	defer l.all.Wait()
	defer stop()
	r, err := next(ctx, methodListen, req)
	if err == nil && len(l.ids) > 0 {
		<-ctx.Done()
	}
	return r, err
}

// listenAck is what the server agreed to, with what the SDK does not know.
type listenAck struct {
	sdk.ParamsBase
	Notifications struct {
		sdk.NotificationSubscriptions
		TaskIDs []string `json:"taskIds,omitempty"`
	} `json:"notifications"`
}

// send adds the tasks to what a stream is acknowledged with, after which they are told of.
func (s *Server) send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		l, listens := ctx.Value(listenKey{}).(*taskStream)
		p, acks := req.GetParams().(*sdk.SubscriptionsAcknowledgedParams)
		if !listens || !acks || len(l.ids) == 0 {
			return next(ctx, method, req)
		}
		ack := &listenAck{ParamsBase: sdk.ParamsBase{Meta: p.Meta}}
		ack.Notifications.NotificationSubscriptions, ack.Notifications.TaskIDs = p.Notifications, l.ids
		r, err := next(ctx, method, &sdk.ServerRequest[sdk.Params]{Session: l.session, Params: ack})
		if err == nil {
			for _, id := range l.ids {
				l.all.Go(func() { l.follow(ctx, id, p.Meta[sdk.MetaKeySubscriptionID]) })
			}
		}
		return r, err
	}
}

// follow tells how a task stands, as tasks/get would, now and whenever it stands otherwise, until it has ended.
func (l *taskStream) follow(ctx context.Context, id string, subscription any) {
	poll := time.NewTicker(l.c.s.opts.TaskPollInterval) // for what happens elsewhere
	defer poll.Stop()
	told := ""
	for {
		c := *l.c
		q, err := c.s.recorded(ctx, id, c.st)
		if err != nil {
			return
		}
		var news <-chan struct{}
		if t, ok := c.running(q); ok {
			news, _ = t.changed() // before it is looked at, so that no change is missed
		}
		r, err := c.getTask(ctx, q)
		if err != nil {
			return
		}
		if stands := r.stands(); stands != told {
			if l.line.tell(ctx, r.notification(subscription)) != nil {
				return
			}
			told = stands
		}
		if r.ended() {
			return
		}
		select {
		case <-news:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// stands is what of a task a client is told of when it changes.
func (o *wireResult) stands() string {
	var asked map[string]json.RawMessage
	_ = json.Unmarshal(o.members["inputRequests"], &asked) // which was made here
	return unquoted(o.members["status"]) + " " + strings.Join(slices.Sorted(maps.Keys(asked)), " ")
}

// ended reports whether a task has.
func (o *wireResult) ended() bool {
	return slices.Contains([]string{taskCompleted, taskFailed, taskCancelled}, unquoted(o.members["status"]))
}

// notification tells of a task what tasks/get does.
func (o *wireResult) notification(subscription any) *jsonrpc.Request {
	all := maps.Clone(o.members)
	delete(all, "resultType")
	meta := maps.Clone(o.Meta)
	if meta == nil {
		meta = sdk.Meta{}
	}
	meta[sdk.MetaKeySubscriptionID] = subscription
	params, err := json.Marshal(&wireResult{members: all, ResultBase: sdk.ResultBase{Meta: meta}})
	if err != nil {
		panic(fmt.Sprintf("mcp: a task: %v", err)) // of members that were made here
	}
	return &jsonrpc.Request{Method: notifyTasks, Params: params}
}
