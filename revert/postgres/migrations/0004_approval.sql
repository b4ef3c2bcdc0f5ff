-- Which approvals count for the calls of a node, as its openings announced them;
-- null: it announced nothing.
ALTER TABLE nodes ADD COLUMN approval json;
