package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ErrCopiedNode says that a copy of a state folder is in use: another process
// has the same node ID in another folder or on another system, and lives.
var ErrCopiedNode = errors.New("another process with the identity of this node lives elsewhere: its state folder was copied")

// Node is an opening of a journal by a node: a state folder and the processes
// that use it. The folder has the identity of the node, and what its runtimes
// keep beside the journal. Files belong to the node that recorded them.
type Node struct {
	*Journal
	dir   string
	works atWork
}

// nodeIdentity is what an opening says about its node.
type nodeIdentity struct{ id, dir, place string }

// OpenNode opens the journal in a database for the node whose state folder is
// dir. It creates the folder, private to its user, and the identity of the node
// in it, if they are missing. It fails with ErrCopiedNode if a copy of the
// folder is in use.
func OpenNode(ctx context.Context, url, dir string, opts ...Option) (*Node, error) {
	j, err := newJournal(opts)
	if err != nil {
		return nil, err
	}
	j.locate = func() (nodeIdentity, error) { return identify(dir) }
	if err := j.start(ctx, url); err != nil {
		return nil, err
	}
	return &Node{Journal: j, dir: dir}, nil
}

// Dir returns the state folder, so that a runtime can refuse roots around it.
func (n *Node) Dir() string { return n.dir }

// NodeID identifies the node. Records name it as the node of their roots.
func (n *Node) NodeID() string { return n.node.id }

// Append stores a batch as Journal.Append does. Nodes can have files of the same
// name, so a claim of a file holds on this node alone. Other claims hold on all
// nodes.
func (n *Node) Append(ctx context.Context, b journal.Batch) error {
	own := "node://" + n.NodeID() + "/"
	claims := b.Claims
	b.Claims = nil
	for _, c := range claims {
		if strings.HasPrefix(c, "file://") {
			c = own + c
		}
		b.Claims = append(b.Claims, c)
	}
	err := n.Journal.Append(ctx, b)
	if held, ok := errors.AsType[*journal.ClaimedError](err); ok {
		return &journal.ClaimedError{Resource: strings.TrimPrefix(held.Resource, own), Holder: held.Holder}
	}
	return err
}

// SetRoots announces the folders of this node.
func (n *Node) SetRoots(ctx context.Context, roots []record.Root) error {
	text, err := json.Marshal(roots)
	if err != nil {
		return err
	}
	return n.again(ctx, func() error {
		_, err := n.pool.Exec(ctx, "UPDATE nodes SET roots = $2::json WHERE id = $1", n.NodeID(), string(text))
		return err
	})
}

// Roots returns the announced folders of this node.
func (n *Node) Roots(ctx context.Context) (roots []record.Root, err error) {
	err = n.again(ctx, func() error {
		var text string
		if err := n.pool.QueryRow(ctx, "SELECT roots::text FROM nodes WHERE id = $1", n.NodeID()).Scan(&text); err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &roots)
	})
	return roots, err
}

// NodeInfo describes a node.
type NodeInfo struct {
	ID        string        `json:"id"`
	Host      string        `json:"host"`
	Dir       string        `json:"state"`          // its state folder
	First     time.Time     `json:"first"`          // when it opened the journal for the first time
	Since     time.Time     `json:"since,omitzero"` // when the oldest of its living openings began; zero: none lives
	Processes int           `json:"processes"`      // number of living openings
	Roots     []record.Root `json:"roots"`
}

// Nodes lists the nodes of the journal, in the order in which they first opened
// it. A node is alive while an opening of it holds its lock.
func (j *Journal) Nodes(ctx context.Context) (all []NodeInfo, err error) {
	err = j.again(ctx, func() error {
		all = nil
		rows, err := j.pool.Query(ctx, `SELECT n.id, n.host, n.dir, n.first, n.roots::text, min(o.opened), count(o.id)
			FROM nodes n LEFT JOIN owners o ON o.node = n.id AND o.ended IS NULL AND `+alive("o.id", "$1")+`
			GROUP BY n.id ORDER BY n.first, n.id`, j.class)
		if err != nil {
			return err
		}
		return each(rows, func() error {
			n, since, roots := NodeInfo{}, (*time.Time)(nil), ""
			if err := rows.Scan(&n.ID, &n.Host, &n.Dir, &n.First, &roots, &since, &n.Processes); err != nil {
				return err
			}
			if since != nil {
				n.Since = since.UTC()
			}
			n.First = n.First.UTC()
			all = append(all, n)
			return json.Unmarshal([]byte(roots), &all[len(all)-1].Roots)
		})
	})
	return all, err
}

// registerNode stores where this node lives now. The row lock makes openings of
// one node wait for each other, so of two copies one finds the other.
func (j *Journal) registerNode(ctx context.Context, tx pgx.Tx, host string) error {
	n := j.node
	_, err := tx.Exec(ctx, "INSERT INTO nodes (id, host, dir, place) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING", n.id, host, n.dir, n.place)
	if err != nil {
		return err
	}
	var place, was, dir string
	if err := tx.QueryRow(ctx, "SELECT place, host, dir FROM nodes WHERE id = $1 FOR UPDATE", n.id).Scan(&place, &was, &dir); err != nil {
		return err
	}
	if place != n.place {
		var lives bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM owners o WHERE o.node = $1 AND o.ended IS NULL AND "+alive("o.id", "$2")+")", n.id, j.class).Scan(&lives)
		if err != nil {
			return err
		}
		if lives {
			return fmt.Errorf("node %s lives at %s in %s: %w", n.id, was, dir, ErrCopiedNode)
		}
	}
	_, err = tx.Exec(ctx, "UPDATE nodes SET host = $2, dir = $3, place = $4 WHERE id = $1", n.id, host, n.dir, n.place)
	return err
}

// HasNode reports whether a state folder has the identity of a node.
func HasNode(dir string) bool {
	_, err := os.Lstat(identityFile(dir))
	return err == nil
}
