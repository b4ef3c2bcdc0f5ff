package guides_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
)

// recipesPage has a policy with its tests in each recipe. TestTranscripts runs
// its commands.
const recipesPage = "guides/policy-recipes.md"

// programs skips a test whose programs this machine cannot run.
func programs(t *testing.T) {
	t.Helper()
	if goruntime.GOOS != "linux" {
		t.Skip("programs run only on Linux")
	}
	for _, name := range []string{"git", "sed", "seq"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
}

// prepareRecipes provides what the page does not create: the database, the
// service, and a journal that accepts approvals without a terminal.
func prepareRecipes(p *place) {
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "app.db"))
	require.NoError(p.t, err)
	_, err = db.Exec(`CREATE TABLE orders(tenant TEXT, id INTEGER, state TEXT, PRIMARY KEY (tenant, id)) WITHOUT ROWID;
		INSERT INTO orders VALUES ('acme', 17, 'new'), ('globex', 4, 'new')`)
	require.NoError(p.t, err)
	require.NoError(p.t, db.Close())

	var sent []string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil // the page shows the answer
		_, _ = fmt.Fprintln(w, "up")
	})
	mux.HandleFunc("POST /mails", func(w http.ResponseWriter, r *http.Request) {
		var mail struct{ To string }
		_ = json.NewDecoder(r.Body).Decode(&mail)
		sent = append(sent, mail.To)
		w.WriteHeader(http.StatusNoContent)
	})
	web := httptest.NewServer(mux)
	p.t.Cleanup(func() {
		web.Close()
		require.Equal(p.t, []string{"bob@example.com"}, sent, "the revert dropped the other mail")
	})
	p.names = map[string]string{"127.0.0.1:8080": web.Listener.Addr().String()}

	require.NoError(p.t, os.Mkdir(filepath.Join(p.dir, "shop"), 0o700))
	p.acceptApprovals("shop")
}

// recipes returns the files of the page by folder.
func recipes(t *testing.T) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, b := range read(t) {
		name := fileName.FindStringSubmatch(b.before)
		if b.doc != recipesPage || name == nil || b.lang == "console" {
			continue
		}
		folder, file := path.Split(name[1])
		if all[folder] == nil {
			all[folder] = map[string]string{}
		}
		all[folder][file] = b.text
	}
	return all
}

var slowNote = regexp.MustCompile(`(?m)^· .*: slower than it could be: OPA's interpreter .*\n`)

// TestPolicyRecipes checks each recipe of the page: remit policy check finds
// nothing, the tests reach each rule, and they fail without any of the rules.
func TestPolicyRecipes(t *testing.T) {
	shell(t)
	p := newPlace(t)
	all := recipes(t)
	p.write("services.json", all[""]["services.json"])
	p.write("own.json", strings.Replace(all[""]["services.json"], `"name": "send_mail"`, `"name": "run_tests"`, 1)) // an agent has its own tools
	delete(all, "")
	require.GreaterOrEqual(t, len(all), 10)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		t.Run(strings.TrimSuffix(folder, "/"), func(t *testing.T) {
			for name, text := range all[folder] {
				p.write(folder+name, text)
			}
			services := "services.json"
			if folder == "earlier/" {
				services = "own.json"
			}
			out := p.sh(0, "remit policy check --tools --services "+services+" --strict --notes "+folder)
			if folder == "earlier/" { // OPA evaluates all rules about earlier calls
				out = slowNote.ReplaceAllString(out, "")
			}
			require.Regexp(t, `^loaded; \d+ tests, 0 failed\n$`, out)
			out = p.sh(0, "remit policy test --coverage 100 "+folder)
			require.NotContains(t, out, "no test reaches")
			for name, text := range all[folder] {
				if strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego") {
					eachRuleMatters(t, all[folder], name, text)
				}
			}
		})
	}
}

// eachRuleMatters checks that the tests of a recipe fail if a rule is removed.
func eachRuleMatters(t *testing.T, files map[string]string, name, text string) {
	parts := strings.Split(text, "\n\n")
	for i, rule := range parts {
		if strings.HasPrefix(rule, "package ") || strings.HasPrefix(rule, "import ") {
			continue
		}
		without := maps.Clone(files)
		without[name] = strings.Join(slices.Delete(slices.Clone(parts), i, i+1), "\n\n")
		engine, err := rego.New(rego.Options{Modules: without})
		if err != nil {
			continue // another rule needs it
		}
		report, err := engine.Test(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, report.Failed(), "no test fails without this rule:\n%s", rule)
	}
}
