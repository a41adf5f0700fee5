-- A store of schema version 3 with few rows.
PRAGMA application_id = 1380206412;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE "ceilings" (
  "environment" TEXT NOT NULL REFERENCES "environments" ("key") ON DELETE CASCADE,
  "device" TEXT NOT NULL,
  "number" INTEGER NOT NULL,
  "kind" TEXT,
  "subject" TEXT,
  "path" TEXT,
  "scope" TEXT,
  "unit" TEXT,
  "value" REAL,
  "low" REAL,
  "high" REAL,
  "clock_mhz" REAL,
  "datasheet" REAL,
  "capacity_bytes" INTEGER,
  "measured" TEXT,
  PRIMARY KEY ("environment", "device", "number")
) WITHOUT ROWID;
INSERT INTO "ceilings" VALUES('desk-key','cpu',0,'compute','fp32','avx512','all cores','FLOP/s',100000000000.0,90000000000.0,110000000000.0,2000.0,NULL,0,'2026-11-01T09:00:00.000Z');
INSERT INTO "ceilings" VALUES('desk-key','cpu',1,'bandwidth','memory','read','all cores','B/s',10000000000.0,9000000000.0,11000000000.0,2000.0,NULL,0,'2026-11-01T09:00:00.000Z');
CREATE TABLE "environments" (
  "key" TEXT NOT NULL PRIMARY KEY,
  "label" TEXT,
  "host" TEXT,
  "cpu" TEXT,
  "gpus" TEXT,
  "fingerprint" TEXT
);
INSERT INTO "environments" VALUES('desk-key','desk','box','Some CPU',NULL,'{"cpu":{"processors":4,"usable_processors":4}}');
CREATE TABLE "epochs" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "epoch" INTEGER,
  "train_loss" REAL,
  "train_accuracy" REAL,
  "test_loss" REAL,
  "test_accuracy" REAL,
  "samples" INTEGER,
  "seconds" REAL,
  "data_wait_seconds" REAL,
  "evaluation_seconds" REAL,
  "energy_joules" REAL,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "epochs" VALUES(12,0,2,2.309,0.1042,2.327,0.125,48,0.03474,0.0001149,0.005689,NULL);
CREATE TABLE "findings" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "name" TEXT,
  "severity" TEXT,
  "evidence" TEXT,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "findings" VALUES(3,0,'outliers','warning','one sentence');
INSERT INTO "findings" VALUES(12,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(14,0,'profiling overhead','warning','one sentence');
CREATE TABLE "memory" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "device" TEXT,
  "category" TEXT,
  "source" TEXT,
  "bytes" INTEGER,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "memory" VALUES(3,0,'cpu','input','planned',12608);
INSERT INTO "memory" VALUES(3,1,'cpu','parameter','planned',109568);
INSERT INTO "memory" VALUES(14,0,'cpu','input','planned',12608);
INSERT INTO "memory" VALUES(14,1,'cpu','parameter','planned',31936);
CREATE TABLE "readings" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "at_seconds" REAL,
  "device" TEXT,
  "sensor" TEXT,
  "value" REAL,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "readings" VALUES(12,0,0.007884,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(12,1,0.007884,'cpu','rss_bytes',23440000.0);
INSERT INTO "readings" VALUES(14,0,0.0002196,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(14,1,0.0002196,'cpu','rss_bytes',24040000.0);
CREATE TABLE "run_notes" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "value" TEXT,
  PRIMARY KEY ("run", "name")
) WITHOUT ROWID;
INSERT INTO "run_notes" VALUES(3,'clock','host');
CREATE TABLE "run_numbers" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "value" REAL,
  PRIMARY KEY ("run", "name")
) WITHOUT ROWID;
INSERT INTO "run_numbers" VALUES(3,'median_seconds',0.0001719);
INSERT INTO "run_numbers" VALUES(3,'training_flops',4269000.0);
INSERT INTO "run_numbers" VALUES(12,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(12,'learning_rate',0.01);
INSERT INTO "run_numbers" VALUES(12,'test_samples',16.0);
INSERT INTO "run_numbers" VALUES(12,'training_flops',562600.0);
INSERT INTO "run_numbers" VALUES(14,'profiled_seconds',3.035e-05);
INSERT INTO "run_numbers" VALUES(14,'training_flops',578500.0);
CREATE TABLE "runs" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT,
  "uuid" TEXT NOT NULL UNIQUE,
  "environment" TEXT REFERENCES "environments" ("key"),
  "command" TEXT,
  "arguments" TEXT,
  "group" TEXT,
  "label" TEXT,
  "started" TEXT,
  "finished" TEXT,
  "status" TEXT,
  "error" TEXT,
  "seed" INTEGER,
  "kind" TEXT,
  "model" TEXT,
  "settings" TEXT,
  "batch" INTEGER,
  "image" TEXT,
  "classes" INTEGER,
  "precision" TEXT,
  "optimizer" TEXT,
  "data" TEXT,
  "data_samples" INTEGER,
  "normalisation" TEXT,
  "variant" TEXT,
  "backend" TEXT,
  "device" TEXT,
  "threads" INTEGER,
  "options" TEXT);
INSERT INTO "runs" VALUES(3,'0000000c-0000-4000-8000-00000000000c','desk-key','bench','ridgeline bench mnist_cnn --set filters=4,8 --loader --workers 2 --samples 64 --batch 16 --recompute --label-smoothing 0.1 --freeze ''conv1.*'' --freeze ''conv2.*'' --normalize mnist --optimizer adamw --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','00000012-0000-4000-8000-000000000012',NULL,'2026-11-01T10:03:00.000Z','2026-11-01T10:03:30.000Z','complete',NULL,0,'training','mnist_cnn','filters=4,8',16,'1x28x28',10,'fp32','adamw weight decay 0.01','synthetic',64,'(pixels / 255 - 0.1307) / 0.3081','freeze=conv1.*,freeze=conv2.*,label-smoothing=0.1,loader','native','cpu',2,'recompute,workers 2');
INSERT INTO "runs" VALUES(12,'0000000b-0000-4000-8000-00000000000b','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --batch 16 --epochs=2 --store s.db --env-label desk --telemetry 5 --checkpoint ''check points'' --resume','00000019-0000-4000-8000-000000000019',NULL,'2026-11-01T10:12:00.000Z','2026-11-01T10:12:30.000Z','complete',NULL,0,'training','mlp',NULL,16,'1x28x28',10,'fp32','sgd','synthetic',48,'pixels / 255, in [0, 1]',NULL,'native','cpu',2,NULL);
INSERT INTO "runs" VALUES(14,'00000004-0000-4000-8000-000000000004','desk-key','profile','ridgeline profile mlp --batch 16 --steps 2 --no-roof --lr 0.3 --store s.db --env-label desk --telemetry 5','0000001b-0000-4000-8000-00000000001b',NULL,'2026-11-01T10:14:00.000Z','2026-11-01T10:14:30.000Z','complete',NULL,0,'training','mlp',NULL,16,'1x28x28',10,'fp32','sgd momentum 0.9','synthetic',16,'pixels / 255, in [0, 1]',NULL,'native','cpu',2,NULL);
CREATE TABLE "samples" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "process" INTEGER,
  "block" INTEGER,
  "iteration" INTEGER,
  "kind" TEXT,
  "at_seconds" REAL,
  "wall_seconds" REAL,
  "device_seconds" REAL,
  "data_wait_seconds" REAL,
  "upload_seconds" REAL,
  "forward_seconds" REAL,
  "backward_seconds" REAL,
  "optimizer_seconds" REAL,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "samples" VALUES(3,0,0,0,0,'warmup',0.02484,0.08235,NULL,0.0,5.334e-06,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,1,0,1,1,'measured',0.1075,0.0001614,NULL,0.0,1.639e-06,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,2,0,1,2,'measured',0.1076,0.003543,NULL,0.003421,3.877e-06,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,0,0,0,0,'warmup',0.0004184,0.007624,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,1,0,0,1,'warmup',0.008047,2.704e-05,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,2,0,0,2,'warmup',0.008075,2.417e-05,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE "steps" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "index" INTEGER,
  "layer" TEXT,
  "ops" TEXT,
  "phase" TEXT,
  "provider" TEXT,
  "kernel" TEXT,
  "seconds" REAL,
  "flops" INTEGER,
  "work_flops" INTEGER,
  "bytes_read" INTEGER,
  "bytes_written" INTEGER,
  "working_set_bytes" INTEGER,
  "unit" TEXT,
  "flop_factor" REAL,
  "counted_bytes" REAL,
  "covers" TEXT,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "steps" VALUES(3,0,0,'input','normalize','input','native','native:normalize',3.239e-06,25088,25088,12544,50176,62720,'fp32',1.0,NULL,'input normalize input');
INSERT INTO "steps" VALUES(3,1,1,'conv1','conv2d+bias+activation','forward','native','native:conv2d_epilogue',4.654e-05,865280,865280,50336,173056,229472,'fp32',1.0,NULL,'forward conv2d conv1; forward bias conv1; forward activation act1');
INSERT INTO "steps" VALUES(14,0,0,'input','normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','input+forward+backward-data+backward-weights','native','native:mlp_step',2.658e-05,538688,538688,44480,31876,261732,'fp32',1.0,NULL,'input normalize input; forward reshape flatten; forward linear fc1; forward bias fc1; forward activation act1; forward linear fc2; forward bias fc2; forward softmax_cross_entropy loss; forward metrics loss; backward-data softmax_cross_entropy_backward loss; backward-weights bias_backward fc2; backward-weights linear_backward_weights fc2; backward-data linear_backward_data fc2; backward-data activation_backward act1; backward-weights bias_backward fc1; backward-weights linear_backward_weights fc1');
INSERT INTO "steps" VALUES(14,1,1,'fc1','sgd','optimizer','native','native:sgd_all',2.969e-06,39800,39800,95520,63680,95520,'fp32',1.0,NULL,'optimizer sgd fc1; optimizer sgd fc1; optimizer sgd fc2; optimizer sgd fc2');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',20);
COMMIT;
