package connect

import (
	"errors"
	"fmt"
)

// Disconnect restores every file that connecting this client changed, in any
// project. A file that is as connecting left it is restored byte for byte. A
// server leaves the gateway's configuration if it is unchanged and no other
// client uses it.
func (c Client) Disconnect(p Environment, mode Mode) (r Report, err error) {
	if err := p.check(); err != nil {
		return r, err
	}
	if mode == Write {
		unlock, err := p.lock()
		if err != nil {
			return r, err
		}
		defer unlock()
	}
	for range attempts {
		if r, err = c.disconnect(p, mode); !errors.Is(err, errMoved) {
			return r, err
		}
	}
	return r, fmt.Errorf("%s keeps writing its configuration: quit it and try again: %w", c.title, err)
}

func (c Client) disconnect(p Environment, mode Mode) (r Report, err error) {
	r = Report{Client: c.name, Title: c.title, Preview: mode != Write}
	records, err := p.records()
	if err != nil {
		return r, err
	}
	var steps []*step
	var others []*record
	var gone []movedServer
	for _, old := range records {
		if !c.owns(old) {
			others = append(others, old)
			continue
		}
		s, err := back(p, old)
		if err != nil {
			return r, inFile(old.Path, err)
		}
		steps = append(steps, s)
		gone = append(gone, old.moved()...)
	}
	if len(steps) == 0 {
		return r, fmt.Errorf("%s: %w", c.title, ErrNotConnected)
	}
	edits, err := gatewayEdits(nil, gone, others)
	if err != nil {
		return r, err
	}
	r.fill(steps, edits)
	if mode != Write {
		return r, nil
	}
	for _, s := range steps {
		if err := s.write(); err != nil {
			return r, err
		}
	}
	for _, e := range edits {
		if err := e.apply(); err != nil {
			return r, err
		}
	}
	for _, s := range steps {
		if err := p.forget(s.old, s.report.Identical); err != nil {
			return r, err
		}
	}
	return r, nil
}

// owns reports whether a record is about a file of the client.
func (c Client) owns(r *record) bool {
	return r.Client == c.name && (c.only == "" || r.Path == c.only)
}

// back plans the restoration of one file.
func back(p Environment, old *record) (s *step, err error) {
	s = &step{source: source{path: old.Path, format: old.format(), layout: old.layout()}, old: old, report: File{Path: old.Path, State: StateAbsent}}
	backup := backupFile(p.recordFile(old.Path))
	if s.held, err = loadFile(old.Path); err != nil {
		return s, err
	}
	if s.held == nil && old.Missing {
		s.report.Identical = true
		return s, nil
	}
	if s.held == nil {
		s.report.Notes, s.report.Backup = []string{"it is gone: the backup has what was in it"}, backup
		return s, nil
	}
	s.report.State = StateDirect
	if s.after, s.report.Identical, s.report.Notes, err = p.before(old, s.held); err != nil {
		return s, err
	}
	if s.after == nil {
		s.report.State = StateAbsent
	}
	if !s.report.Identical && !old.Missing {
		s.report.Backup = backup
	}
	for _, t := range old.Tables {
		for _, server := range t.Servers {
			s.report.Servers = append(s.report.Servers, Server{Name: server.Name, Scope: t.Scope, Project: t.Project})
		}
	}
	if s.report.Changed = !sameContent(s.after, s.held.text); s.report.Changed {
		err = s.held.writable()
	}
	return s, err
}
