CREATE TABLE orders (
  id         BIGINT PRIMARY KEY,
  close_task BIGINT NOT NULL,
  closed     BOOLEAN NOT NULL DEFAULT FALSE
);
