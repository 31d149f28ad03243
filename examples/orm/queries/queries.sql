-- name: InsertOrder :exec
INSERT INTO orders (id, close_task) VALUES (?, ?);
