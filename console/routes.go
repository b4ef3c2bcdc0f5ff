package console

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

//go:embed assets/console.css assets/console.js assets/icon.svg
var assets embed.FS

//go:embed pages/*.html
var pageFiles embed.FS

// pages returns the templates. Each page defines "main" within the layout. They are parsed at their first use: parsing takes 4 ms,
// which each start of the command would pay.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]*template.Template {
	all := map[string]*template.Template{}
	layout := template.Must(template.New("").Funcs(template.FuncMap{
		"text": callview.Escape, "lines": callview.EscapeLines, "resource": callview.Resource, "verb": callview.ChangeVerb, "when": when, "clock": clock, "outcome": outcomeWords, "count": count,
	}).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html"))
	for _, name := range []string{"now", "sessions", "timeline", "call", "diff", "diffs", "plan", "report", "redo", "approve", "commit", "grants", "why", "health", "policy", "problem", "enter"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return all
}

// routes returns the handlers of the pages, without access control.
func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	for path, kind := range map[string]string{"/assets/console.css": "text/css", "/assets/console.js": "text/javascript", "/assets/icon.svg": "image/svg+xml"} {
		mux.HandleFunc("GET "+path, asset(path, kind))
	}
	mux.HandleFunc("GET /enter", func(w http.ResponseWriter, r *http.Request) {
		c.write(w, r, "enter", page{Title: "Open the console", Closed: true})
	})
	mux.HandleFunc("POST /enter", c.enter)
	mux.HandleFunc("POST /leave", c.leave)
	mux.HandleFunc("GET /events", c.events)
	mux.HandleFunc("GET /image", c.image)
	for path, show := range map[string]func(r *http.Request) (string, page, error){
		"GET /{$}": c.now, "GET /sessions": c.sessions, "GET /timeline": c.timeline, "GET /call": c.call, "GET /diff": c.diff,
		"GET /revert": c.plan, "GET /redo": c.redoPlan, "GET /approve": c.approval, "GET /commit": c.commit, "GET /report": c.report, "GET /policy": c.policy, "GET /grants": c.grants, "GET /why": c.why, "GET /health": c.health,
	} {
		mux.HandleFunc(path, c.shown(show))
	}
	for path, act := range map[string]func(r *http.Request) (to string, err error){
		"POST /revert": c.revert, "POST /redo": c.redo, "POST /approve": c.answer, "POST /commit": c.answerCommit, "POST /revoke": c.revoke, "POST /health": c.check, "POST /visits": c.endVisits, "POST /end": c.endPrompts,
	} {
		mux.HandleFunc(path, c.acted(act))
	}
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		c.problem(w, r, &problem{http.StatusNotFound, "There is no such page", ""})
	})
	return mux
}

func asset(path, kind string) http.HandlerFunc {
	data, err := assets.ReadFile(path[1:])
	if err != nil {
		panic(err) // the file is part of the program
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write(data)
	}
}

// page is what the layout shows around a page.
type page struct {
	Title  string
	Place  string // which link of the navigation is the current one
	Live   string // address for updates; empty: the page does not change
	Head   int64  // position of the newest record that the page can have
	Closed bool   // without navigation
	Code   int    // status code; 0: OK
	Data   any

	Name string // set by write
	Form string
	By   string
}

// shown serves a page.
func (c *Console) shown(show func(r *http.Request) (string, page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, p, err := show(r)
		if err != nil {
			c.problem(w, r, err)
			return
		}
		c.write(w, r, name, p)
	}
}

// acted does what a form says, and leads to the page with the result.
func (c *Console) acted(act func(r *http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		to, err := act(r)
		if err != nil {
			c.problem(w, r, err)
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// write writes a page as a whole, so that a failed template leaves no half one.
func (c *Console) write(w http.ResponseWriter, r *http.Request, name string, p page) {
	if !p.Closed { // the name of the workspace is for the person who entered
		p.Name, p.Form, p.By = c.Title, visitOf(r).form, c.By
	}
	var b bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&b, "layout", p); err != nil {
		refuse(w, http.StatusInternalServerError, "the page could not be made: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if p.Code != 0 {
		w.WriteHeader(p.Code)
	}
	_, _ = w.Write(b.Bytes())
}

// problem is an error with a status code and a text for a person.
type problem struct {
	code int
	what string
	why  string
}

func (p *problem) Error() string { return p.what }

type problemPage struct{ What, Why string }

func (c *Console) problem(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, journal.ErrNotFound):
		p = &problem{http.StatusNotFound, "The journal has no such entry", err.Error()}
	case errors.Is(err, record.ErrDamaged):
		p = &problem{http.StatusInternalServerError, "The journal is damaged", err.Error()}
	case errors.Is(err, revert.ErrInFlight), errors.Is(err, journal.ErrNotOwner), errors.Is(err, journal.ErrClaimed), errors.Is(err, revert.ErrNotEnded),
		errors.Is(err, tool.ErrDenied), errors.Is(err, tool.ErrInvalid), errors.Is(err, revert.ErrOutcomeKnown), errors.Is(err, agent.ErrTxnEnded):
		p = &problem{http.StatusConflict, "This was not done", err.Error()}
	default:
		p = &problem{http.StatusInternalServerError, "This could not be done", err.Error()}
	}
	_, known := c.access.find(r)
	c.write(w, r, "problem", page{Title: p.what, Code: p.code, Closed: !known, Data: problemPage{p.what, p.why}})
}

// refuseVisitor answers a browser without a valid cookie.
func (c *Console) refuseVisitor(w http.ResponseWriter, r *http.Request) {
	c.problem(w, r, &problem{http.StatusUnauthorized, "This browser has not entered", "Open the address that remit console prints. It counts once: press Enter in the terminal for another one."})
}

func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "the form cannot be read")
		return
	}
	cookie, ok := c.access.enter(r.PostForm.Get("token"))
	if !ok {
		c.problem(w, r, &problem{http.StatusForbidden, "The address was used, or is too old", "It counts once, within ten minutes: press Enter in the terminal of remit console for another one."})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(visitTime.Seconds())})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *Console) leave(w http.ResponseWriter, r *http.Request) {
	c.access.leave(visitOf(r))
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	http.Redirect(w, r, "/enter", http.StatusSeeOther)
}
