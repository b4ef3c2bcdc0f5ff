-- Nodes: state folders whose openings use this journal. place is the system
-- and the folder in which the node lived last; a copy of the folder has another
-- one. roots are the folders that it announced, as a session record has them.
CREATE TABLE nodes (
	id    text        PRIMARY KEY,
	host  text        NOT NULL,
	dir   text        NOT NULL,
	place text        NOT NULL,
	roots json        NOT NULL DEFAULT '[]',
	first timestamptz NOT NULL DEFAULT now()
);

-- The node of an opening; null: it has none.
ALTER TABLE owners ADD COLUMN node text;
CREATE INDEX owners_node ON owners (node) WHERE ended IS NULL;
