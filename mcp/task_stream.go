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

// A client that listens gets the states of its tasks on the stream that it
// opened. The SDK supports neither the task IDs in the request nor the
// notification. So stream.go moves the IDs to _meta, and the notification goes
// out through the stream of the request.

const (
	methodListen    = "subscriptions/listen"
	notifyTasks     = "notifications/tasks"
	metaListenTasks = "remit.dev/listen-tasks" // in the _meta that the SDK gets
	mostListened    = 16                       // tasks of one stream
)

// taskStream is one stream on which a client gets the states of tasks.
type taskStream struct {
	c       *call
	line    notifier
	ids     []string // tasks of the session
	session *sdk.ServerSession
	all     sync.WaitGroup
}

type listenKey struct{}

// mayListen returns an error for a client without the Tasks extension, and for
// too many tasks.
func mayListen(c *call, ids []string) error {
	switch {
	case len(ids) > 0 && !c.clientSupportsTasks():
		return errTasksUnsupported()
	case len(ids) > mostListened:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("taskIds has %d tasks; one stream tells of at most %d", len(ids), mostListened)}
	}
	return nil
}

// listens finds the tasks that a request listens to. It returns nil if there
// are none.
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
		if _, err := s.recorded(ctx, id, st); err == nil { // the server leaves out tasks that are unknown or belong to another session
			l.ids = append(l.ids, id)
		}
	}
	return l, nil
}

// serveRequest lets the SDK serve the request, and keeps the stream while the client
// listens.
func (l *taskStream) serveRequest(ctx context.Context, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	ctx, stop := context.WithCancel(context.WithValue(ctx, listenKey{}, l))
	defer l.all.Wait()
	defer stop()
	r, err := next(ctx, methodListen, req)
	if err == nil && len(l.ids) > 0 {
		<-ctx.Done()
	}
	return r, err
}

// listenAck is the acknowledgement of the server, with the members that the SDK
// does not know.
type listenAck struct {
	sdk.ParamsBase
	Notifications struct {
		sdk.NotificationSubscriptions
		TaskIDs []string `json:"taskIds,omitempty"`
	} `json:"notifications"`
}

// send adds the tasks to the acknowledgement of a stream, and then starts to
// follow them.
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

// follow sends the state of a task, as tasks/get returns it, now and at each
// change, until the task has ended.
func (l *taskStream) follow(ctx context.Context, id string, subscription any) {
	poll := time.NewTicker(l.c.s.opts.TaskPollInterval) // for changes in other processes
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
			news, _ = t.changed() // before the state is read, so that no change is missed
		}
		r, err := c.getTask(ctx, q)
		if err != nil {
			return
		}
		if stands := r.status(); stands != told {
			if l.line.notify(ctx, r.notification(subscription)) != nil {
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

// status returns the part of a task's state whose changes a client is notified
// of.
func (o *wireResult) status() string {
	var asked map[string]json.RawMessage
	_ = json.Unmarshal(o.members["inputRequests"], &asked) // made here
	return unquoted(o.members["status"]) + " " + strings.Join(slices.Sorted(maps.Keys(asked)), " ")
}

// ended reports whether a task has ended.
func (o *wireResult) ended() bool {
	return slices.Contains([]string{taskCompleted, taskFailed, taskCancelled}, unquoted(o.members["status"]))
}

// notification returns the state of a task as a notification.
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
		panic(fmt.Sprintf("mcp: a task: %v", err)) // all members were made here
	}
	return &jsonrpc.Request{Method: notifyTasks, Params: params}
}
