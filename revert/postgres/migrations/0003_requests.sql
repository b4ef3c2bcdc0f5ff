-- Requests: work that one node asks of another. body is what is asked, and
-- answer the report. taker is the opening that works on it, or did when it died;
-- takers has all of them. size is that of the journal before the first one.
CREATE TABLE requests (
	id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	node   text        NOT NULL,
	origin text        NOT NULL,
	txn    bytea       NOT NULL,
	body   bytea       NOT NULL,
	state  text        NOT NULL DEFAULT 'asked',
	answer bytea,
	read   boolean     NOT NULL DEFAULT false,
	taker  int,
	takers text[]      NOT NULL DEFAULT '{}',
	size   bigint      NOT NULL DEFAULT 0,
	asked  timestamptz NOT NULL DEFAULT now(),
	taken  timestamptz,
	ended  timestamptz
);
CREATE UNIQUE INDEX requests_open ON requests (node, origin, sha256(body)) WHERE ended IS NULL;
CREATE INDEX requests_node ON requests (node, id) WHERE ended IS NULL;
CREATE INDEX requests_origin ON requests (origin, id) WHERE NOT read;

-- Other roles get the rights that they have on the tables of earlier versions.
DO $$
DECLARE granted record;
BEGIN
	FOR granted IN SELECT a.privilege_type AS what, pg_get_userbyid(a.grantee) AS role
		FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.oid = 'nodes'::regclass AND a.grantee NOT IN (0, c.relowner)
			AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
	LOOP
		EXECUTE format('GRANT %s ON requests TO %I', granted.what, granted.role);
	END LOOP;
END $$;
