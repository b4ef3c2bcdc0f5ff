package hook

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/perm/rego"
)

// agentPolicy is the policy of coding agents. All sessions of the process share
// it, so that a person who reads the files knows what decides. The opening of a
// session looks at the files, and exchanges the policy if they changed. While
// they do not load, no session opens, and those that run keep what they have.
type agentPolicy struct {
	log    *slog.Logger
	home   string
	now    func() time.Time
	engine rego.SwappableEngine // denies everything until a policy loads

	mu      sync.Mutex
	digest  string // of the files that engine was read from
	changed string // how the policy changed, until a person can read it
	broken  string // the last error of refresh, which the log has; "": none
}

// refresh makes the files of now decide. After an error the earlier policy
// remains; the caller must not open a session then.
func (p *agentPolicy) refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.load()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != p.broken {
		p.log.Warn("no session of an agent opens", "error", text)
	}
	p.broken = text
	return err
}

// load loads the policy if its files are not the ones that decide. The caller
// holds mu.
func (p *agentPolicy) load() error {
	now := policyfile.AgentPolicy{Paths: policyfile.AgentPaths(), Loaded: p.now()}
	digest := policyfile.Digest(now.Paths) // before the load: what changes during it counts at the next session
	if digest != "" && digest == p.digest {
		return nil
	}
	engine, err := policyfile.LoadAgents(now.Paths)
	if err != nil {
		return fmt.Errorf("%w. A person must mend it: remit policy check %s", err, cli.Quote(now.Paths[len(now.Paths)-1]))
	}
	now.Revision = engine.Revision()
	was, err := policyfile.LoadedAgentPolicy(p.home)
	if err != nil {
		p.log.Warn("it is unknown whether the policy of coding agents changed", "error", err)
	}
	if now.Revision != was.Revision {
		if err := now.Save(p.home); err != nil {
			return err
		}
	}
	if what := now.ChangedSince(was); what != "" {
		p.log.Warn("the policy of coding agents changed", "change", what)
		p.changed = what
	}
	if now.Revision != p.engine.Revision() { // otherwise the engine keeps its cache
		p.engine.Swap(engine)
	}
	p.digest = digest
	return nil
}

// news returns what the person must know when a session starts: that the policy
// changed, once, or that it does not load.
func (p *agentPolicy) news() string {
	if err := p.refresh(); err != nil {
		return "remit: " + err.Error() + ". Until then, each call of this session is denied, and sessions that already run keep the earlier policy"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	what := p.changed
	if p.changed = ""; what == "" {
		return ""
	}
	return "remit: the policy of coding agents changed: " + what + ". If you did not do this: look at the files, and restore them"
}
