package watch

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// Limits of what the screen keeps. What is older is in remit log.
const (
	keptEnded  = 1000
	firstEnded = 200
)

// draw shows the screen until the person quits or the context ends.
func (w *watcher) draw(ctx context.Context, in, out *os.File) error {
	w.app.Progress.Show("")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &model{watcher: w, ctx: ctx, style: w.app.Style(), now: w.app.Host.Now()}
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	hangUp := hangUps()
	ended := make(chan error, 1)
	go func() {
		ended <- w.follow(ctx, firstEnded, func(n news) error {
			p.Send(n)
			return ctx.Err()
		})
		p.Quit() // also after an error of the journal
	}()
	go func() {
		select {
		case <-hangUp:
		case <-ctx.Done():
		}
		p.Quit()
	}()
	_, err := p.Run()
	stop()
	w.close()
	failed := <-ended
	if errors.Is(failed, context.Canceled) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// model is the state of the screen. One goroutine uses it.
type model struct {
	*watcher
	ctx   context.Context //nolint:containedctx // that of the command, for the verbs
	style cli.Style
	now   time.Time

	width, height int
	waiting       []waitLine
	running       []callview.RunningCall
	ended         []endedRow // oldest first
	total         int
	damage        string
	loaded        bool
	older         bool // calls ended before those of the first page

	cursor string // key of the selected entry; empty: the first one
	at     int    // its place when it was last there
	top    int    // first visible line of the list
	pane   *pane
	keys   int    // how often a question was put off
	busy   string // the verb that runs; empty: none
}

// endedRow is what the screen keeps of a call that ended.
type endedRow struct {
	callview.Line
	txn string
	at  time.Time
}

// tick is sent each second, for times that go on.
type tick struct{}

// Init starts the clock.
func (m *model) Init() tea.Cmd { return m.clock() }

func (m *model) clock() tea.Cmd {
	return func() tea.Msg {
		wait, free := m.app.Host.WithTimeout(m.ctx, time.Second, nil)
		<-wait.Done()
		free()
		return tick{}
	}
}

// Update takes a message: news, a key, the size of the terminal, or the result
// of a verb.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		m.now = m.app.Host.Now()
		if m.ctx.Err() != nil {
			return m, tea.Quit
		}
		return m, m.clock()
	case news:
		return m, m.add(msg)
	case reverted:
		for i := range m.ended {
			if l, ok := msg[m.ended[i].ID]; ok {
				m.ended[i].Line = l
			}
		}
	case result:
		return m, m.take(msg)
	case quiet:
		m.ask(msg)
	case tea.KeyPressMsg:
		was := m.pane
		cmd := m.key(msg)
		if was != nil && m.pane == was && was.soon != asksNothing {
			cmd = tea.Batch(cmd, m.askSoon(was.soon))
		}
		return m, cmd
	}
	return m, nil
}

// add takes what a step brought. It keeps the newest calls that ended.
func (m *model) add(n news) tea.Cmd {
	if !m.loaded {
		m.loaded, m.older = true, len(n.Ended) == firstEnded
	}
	for _, c := range n.Ended {
		m.ended = append(m.ended, endedRow{c.Line, c.Call.Ref.Txn, at(c)})
	}
	m.total += len(n.Ended)
	if over := len(m.ended) - keptEnded; over > 0 {
		m.ended = append(m.ended[:0:0], m.ended[over:]...)
	}
	m.running = n.running
	if n.fresh {
		m.waiting = n.waiting
	}
	m.damage = ""
	if n.Damage != nil {
		m.damage = n.Damage.Error()
	}
	return m.reread(n.Reverted)
}

// reverted has the lines of calls of which something was reverted or redone.
type reverted map[string]callview.Line

// reread reads the shown calls of transactions that were reverted.
func (m *model) reread(txns []string) tea.Cmd {
	shown := map[string]bool{}
	for _, e := range m.ended {
		shown[e.txn] = true
	}
	var wanted []string
	for _, id := range txns {
		if shown[id] {
			wanted = append(wanted, id)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return func() tea.Msg {
		lines := reverted{}
		for _, id := range wanted {
			t, err := m.rt.Load(m.ctx, id)
			if err != nil {
				continue // the list stays as it is; the details tell of the damage
			}
			for _, c := range t.Calls {
				lines[c.Ref.Call] = m.lineOf(c)
			}
		}
		return lines
	}
}
