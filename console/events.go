package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/remit-dev/remit/internal/callview"
)

// aliveInterval is the time between signs of life of a stream.
const aliveInterval = 15 * time.Second

// newest returns the position of the newest record.
func (c *Console) newest(ctx context.Context) (pos int64, err error) {
	return callview.NewestPosition(ctx, c.Runtime.Journal())
}

// events streams one event each time that the journal has grown. An event says
// how far, and the page asks for what it shows: so no change is lost if the
// journal grows faster than a browser draws.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many pages get live updates; close one")
		return
	}
	seen, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		seen = last
	} else if err != nil && seen < 0 {
		seen = 0
	}
	if err != nil && seen == 0 {
		seen, _ = c.newest(r.Context()) // without a valid position, only what comes from now on counts
	}
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	_ = to.SetReadDeadline(time.Time{}) // the stream has no end of its own
	send := func(text string) bool {
		_ = to.SetWriteDeadline(time.Now().Add(readTimeout))
		_, err := fmt.Fprint(w, text)
		return err == nil && to.Flush() == nil
	}
	if !send(": open\n\n") {
		return
	}
	poll, quiet := time.NewTicker(callview.PollInterval), time.Now()
	defer poll.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-c.done:
			return
		case <-poll.C:
		}
		if _, ok := c.access.find(r); !ok {
			return
		}
		pos, err := c.newest(r.Context())
		switch {
		case err == nil && pos > seen:
			seen, quiet = pos, time.Now()
			if !send(fmt.Sprintf("id: %d\nevent: change\ndata: %d\n\n", pos, pos)) {
				return
			}
		case time.Since(quiet) > aliveInterval:
			quiet = time.Now()
			if !send(": alive\n\n") {
				return
			}
		}
	}
}
