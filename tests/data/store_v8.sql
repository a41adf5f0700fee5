-- A store of schema version 8, as its programs made it: that of version 7, brought up to date.
PRAGMA application_id = 1380206412;
PRAGMA user_version = 8;
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
  "measured" TEXT, "lower_bound" INTEGER,
  PRIMARY KEY ("environment", "device", "number")
) WITHOUT ROWID;
INSERT INTO "ceilings" VALUES('desk-key','cpu',0,'compute','fp32','avx512','all cores','FLOP/s',100000000000.0,90000000000.0,110000000000.0,2000.0,NULL,0,'2026-11-01T09:00:00.000Z',NULL);
INSERT INTO "ceilings" VALUES('desk-key','cpu',1,'bandwidth','memory','read','all cores','B/s',10000000000.0,9000000000.0,11000000000.0,2000.0,NULL,0,'2026-11-01T09:00:00.000Z',NULL);
CREATE TABLE "environments" (
  "key" TEXT NOT NULL PRIMARY KEY,
  "label" TEXT,
  "host" TEXT,
  "cpu" TEXT,
  "gpus" TEXT,
  "fingerprint" TEXT
);
INSERT INTO "environments" VALUES('desk-key','desk','box','Some CPU',NULL,'{"cpu":{"processors":4,"usable_processors":4}}');
INSERT INTO "environments" VALUES('mac-key','mac','mac','M2',NULL,'macOS 14');
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
INSERT INTO "epochs" VALUES(8,0,1,2.702,0.1,2.378,0.0625,20,0.176,0.0,0.07202,NULL);
INSERT INTO "epochs" VALUES(8,1,2,2.412,0.125,2.422,0.0625,40,0.3552,2.12e-05,0.07202,NULL);
INSERT INTO "epochs" VALUES(9,0,2,2.292,0.1042,2.316,0.125,48,0.01166,0.0,0.008216,NULL);
INSERT INTO "epochs" VALUES(9,1,4,2.241,0.1042,2.287,0.125,96,0.01498,0.0,0.007996,NULL);
INSERT INTO "epochs" VALUES(10,0,6,2.2,0.1667,2.268,0.125,96,0.00676,0.0,4.867e-05,NULL);
INSERT INTO "epochs" VALUES(10,1,7,2.179,0.1042,2.261,0.125,48,8.772e-05,0.0,3.003e-05,NULL);
INSERT INTO "epochs" VALUES(11,0,1,2.326,0.1042,2.33,0.125,32,5.114e-05,0.0,3.69e-05,NULL);
INSERT INTO "epochs" VALUES(12,0,2,2.309,0.1042,2.327,0.125,48,0.03474,0.0001149,0.005689,NULL);
INSERT INTO "epochs" VALUES(13,0,1,0.6912,0.5909,0.7159,0.0,14,0.0001561,0.0,0.0001627,NULL);
INSERT INTO "epochs" VALUES(20,0,1,2.329,0.0625,2.337,0.0625,32,0.02397,0.0,0.01601,NULL);
INSERT INTO "epochs" VALUES(20,1,2,2.327,0.1042,2.328,0.125,48,0.0236,0.0,0.008008,NULL);
INSERT INTO "epochs" VALUES(20,2,3,2.306,0.1042,2.324,0.125,48,0.01994,0.0,0.00802,NULL);
CREATE TABLE "findings" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "name" TEXT,
  "severity" TEXT,
  "evidence" TEXT,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "findings" VALUES(1,0,'noisy neighbour','warning','one sentence');
INSERT INTO "findings" VALUES(3,0,'outliers','warning','one sentence');
INSERT INTO "findings" VALUES(4,0,'outliers','warning','one sentence');
INSERT INTO "findings" VALUES(8,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(9,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(10,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(11,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(12,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(13,0,'accuracy at chance','warning','one sentence');
INSERT INTO "findings" VALUES(14,0,'profiling overhead','warning','one sentence');
INSERT INTO "findings" VALUES(19,0,'noisy neighbour','warning','one sentence');
INSERT INTO "findings" VALUES(20,0,'accuracy at chance','warning','one sentence');
CREATE TABLE "live_bytes" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "step" INTEGER,
  "category" TEXT,
  "bytes" INTEGER,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "live_bytes" VALUES(14,0,0,'input',12608);
INSERT INTO "live_bytes" VALUES(14,1,0,'parameter',31936);
CREATE TABLE "memory" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "device" TEXT,
  "category" TEXT,
  "source" TEXT,
  "bytes" INTEGER,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "memory" VALUES(1,0,'cpu','input','planned',25216);
INSERT INTO "memory" VALUES(1,1,'cpu','parameter','planned',51200);
INSERT INTO "memory" VALUES(3,0,'cpu','input','planned',12608);
INSERT INTO "memory" VALUES(3,1,'cpu','parameter','planned',109568);
INSERT INTO "memory" VALUES(4,0,'cpu','input','planned',6336);
INSERT INTO "memory" VALUES(4,1,'cpu','parameter','planned',31936);
INSERT INTO "memory" VALUES(5,0,'cpu','input','planned',18944);
INSERT INTO "memory" VALUES(5,1,'cpu','parameter','planned',31936);
INSERT INTO "memory" VALUES(6,0,'cpu','input','planned',832);
INSERT INTO "memory" VALUES(6,1,'cpu','parameter','planned',31936);
INSERT INTO "memory" VALUES(14,0,'cpu','input','planned',12608);
INSERT INTO "memory" VALUES(14,1,'cpu','parameter','planned',31936);
INSERT INTO "memory" VALUES(18,0,'cpu','resident','measured',41861120);
INSERT INTO "memory" VALUES(19,0,'cpu','input','planned',12608);
INSERT INTO "memory" VALUES(19,1,'cpu','parameter','planned',31936);
CREATE TABLE "networks" ("key" TEXT NOT NULL PRIMARY KEY, "description" TEXT);
INSERT INTO "networks" VALUES('d1b170529b2ab39a','{"input":[1,28,28],"nodes":[{"layer":"flatten","op":"flatten","title":"flatten","inputs":[-1],"output":[784],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[0],"output":[16],"flops":25088,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[1],"output":[16],"flops":16,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[2],"output":[16],"flops":16,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[3],"output":[8],"flops":256,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[4],"output":[8],"flops":8,"statistics":false},{"layer":"act2","op":"relu","title":"relu","inputs":[5],"output":[8],"flops":8,"statistics":false},{"layer":"fc3","op":"linear","title":"linear","inputs":[6],"output":[10],"flops":160,"statistics":false},{"layer":"fc3","op":"bias","title":"bias","inputs":[7],"output":[10],"flops":10,"statistics":false}]}');
INSERT INTO "networks" VALUES('b7091ea8238d94b2','{"input":[1,28,28],"nodes":[{"layer":"conv1","op":"conv2d","title":"conv2d 3x3","inputs":[-1],"output":[4,26,26],"flops":48672,"statistics":false},{"layer":"conv1","op":"bias","title":"bias","inputs":[0],"output":[4,26,26],"flops":2704,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[1],"output":[4,26,26],"flops":2704,"statistics":false},{"layer":"pool1","op":"max pool","title":"max pool 2x2","inputs":[2],"output":[4,13,13],"flops":2704,"statistics":false},{"layer":"conv2","op":"conv2d","title":"conv2d 3x3","inputs":[3],"output":[8,11,11],"flops":69696,"statistics":false},{"layer":"conv2","op":"bias","title":"bias","inputs":[4],"output":[8,11,11],"flops":968,"statistics":false},{"layer":"act2","op":"relu","title":"relu","inputs":[5],"output":[8,11,11],"flops":968,"statistics":false},{"layer":"pool2","op":"max pool","title":"max pool 2x2","inputs":[6],"output":[8,5,5],"flops":800,"statistics":false},{"layer":"flatten","op":"flatten","title":"flatten","inputs":[7],"output":[200],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[8],"output":[128],"flops":51200,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[9],"output":[128],"flops":128,"statistics":false},{"layer":"act_fc1","op":"relu","title":"relu","inputs":[10],"output":[128],"flops":128,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[11],"output":[10],"flops":2560,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[12],"output":[10],"flops":10,"statistics":false}]}');
INSERT INTO "networks" VALUES('04a2038e653e3a05','{"input":[1,28,28],"nodes":[{"layer":"flatten","op":"flatten","title":"flatten","inputs":[-1],"output":[784],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[0],"output":[10],"flops":15680,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[1],"output":[10],"flops":10,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[2],"output":[10],"flops":10,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[3],"output":[10],"flops":200,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[4],"output":[10],"flops":10,"statistics":false}]}');
INSERT INTO "networks" VALUES('4416d88df3beaaa0','{"input":[1,28,28],"nodes":[{"layer":"conv1","op":"conv2d","title":"conv2d 3x3","inputs":[-1],"output":[8,26,26],"flops":97344,"statistics":false},{"layer":"conv1","op":"bias","title":"bias","inputs":[0],"output":[8,26,26],"flops":5408,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[1],"output":[8,26,26],"flops":5408,"statistics":false},{"layer":"pool1","op":"max pool","title":"max pool 2x2","inputs":[2],"output":[8,13,13],"flops":5408,"statistics":false},{"layer":"conv2","op":"conv2d","title":"conv2d 3x3","inputs":[3],"output":[16,11,11],"flops":278784,"statistics":false},{"layer":"conv2","op":"bias","title":"bias","inputs":[4],"output":[16,11,11],"flops":1936,"statistics":false},{"layer":"act2","op":"relu","title":"relu","inputs":[5],"output":[16,11,11],"flops":1936,"statistics":false},{"layer":"pool2","op":"max pool","title":"max pool 2x2","inputs":[6],"output":[16,5,5],"flops":1600,"statistics":false},{"layer":"flatten","op":"flatten","title":"flatten","inputs":[7],"output":[400],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[8],"output":[128],"flops":102400,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[9],"output":[128],"flops":128,"statistics":false},{"layer":"act_fc1","op":"relu","title":"relu","inputs":[10],"output":[128],"flops":128,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[11],"output":[10],"flops":2560,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[12],"output":[10],"flops":10,"statistics":false}]}');
INSERT INTO "networks" VALUES('78af0ce30d84f7a0','{"input":[3,16,16],"nodes":[{"layer":"conv1","op":"conv2d","title":"conv2d 3x3","inputs":[-1],"output":[8,14,14],"flops":84672,"statistics":false},{"layer":"conv1","op":"bias","title":"bias","inputs":[0],"output":[8,14,14],"flops":1568,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[1],"output":[8,14,14],"flops":1568,"statistics":false},{"layer":"pool1","op":"max pool","title":"max pool 2x2","inputs":[2],"output":[8,7,7],"flops":1568,"statistics":false},{"layer":"conv2","op":"conv2d","title":"conv2d 3x3","inputs":[3],"output":[16,5,5],"flops":57600,"statistics":false},{"layer":"conv2","op":"bias","title":"bias","inputs":[4],"output":[16,5,5],"flops":400,"statistics":false},{"layer":"act2","op":"relu","title":"relu","inputs":[5],"output":[16,5,5],"flops":400,"statistics":false},{"layer":"pool2","op":"max pool","title":"max pool 2x2","inputs":[6],"output":[16,2,2],"flops":256,"statistics":false},{"layer":"flatten","op":"flatten","title":"flatten","inputs":[7],"output":[64],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[8],"output":[128],"flops":16384,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[9],"output":[128],"flops":128,"statistics":false},{"layer":"act_fc1","op":"relu","title":"relu","inputs":[10],"output":[128],"flops":128,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[11],"output":[2],"flops":512,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[12],"output":[2],"flops":2,"statistics":false}]}');
INSERT INTO "networks" VALUES('48bd1f7c74de6187','{"input":[1,28,28],"nodes":[{"layer":"flatten","op":"flatten","title":"flatten","inputs":[-1],"output":[784],"flops":0,"statistics":false},{"layer":"fc1","op":"linear","title":"linear","inputs":[0],"output":[12],"flops":18816,"statistics":false},{"layer":"fc1","op":"bias","title":"bias","inputs":[1],"output":[12],"flops":12,"statistics":false},{"layer":"act1","op":"relu","title":"relu","inputs":[2],"output":[12],"flops":12,"statistics":false},{"layer":"fc2","op":"linear","title":"linear","inputs":[3],"output":[10],"flops":240,"statistics":false},{"layer":"fc2","op":"bias","title":"bias","inputs":[4],"output":[10],"flops":10,"statistics":false}]}');
CREATE TABLE "readings" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "at_seconds" REAL,
  "device" TEXT,
  "sensor" TEXT,
  "value" REAL,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "readings" VALUES(8,0,0.005896,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(8,1,0.005896,'cpu','rss_bytes',25780000.0);
INSERT INTO "readings" VALUES(9,0,0.001702,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(9,1,0.001702,'cpu','rss_bytes',23360000.0);
INSERT INTO "readings" VALUES(10,0,0.01082,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(10,1,0.01082,'cpu','rss_bytes',23610000.0);
INSERT INTO "readings" VALUES(11,0,0.01064,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(11,1,0.01064,'cpu','rss_bytes',23190000.0);
INSERT INTO "readings" VALUES(12,0,0.007884,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(12,1,0.007884,'cpu','rss_bytes',23440000.0);
INSERT INTO "readings" VALUES(13,0,0.0142,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(13,1,0.0142,'cpu','rss_bytes',23590000.0);
INSERT INTO "readings" VALUES(14,0,0.0002196,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(14,1,0.0002196,'cpu','rss_bytes',24040000.0);
INSERT INTO "readings" VALUES(19,0,0.1075,'cpu','cpu_utilisation_percent',100.0);
INSERT INTO "readings" VALUES(19,1,0.1075,'cpu','iowait_percent',0.0);
INSERT INTO "readings" VALUES(20,0,0.0071,'cpu','cpu_mhz',2300.0);
INSERT INTO "readings" VALUES(20,1,0.0071,'cpu','rss_bytes',23310000.0);
CREATE TABLE "run_notes" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "value" TEXT,
  PRIMARY KEY ("run", "name")
) WITHOUT ROWID;
INSERT INTO "run_notes" VALUES(1,'clock','host');
INSERT INTO "run_notes" VALUES(1,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(1,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(3,'clock','host');
INSERT INTO "run_notes" VALUES(3,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(3,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(4,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(4,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(5,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(5,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(6,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(6,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(8,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(8,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(9,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(9,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(10,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(10,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(11,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(11,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(12,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(12,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(13,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(13,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(14,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(14,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(15,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(15,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(18,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(18,'migrated','from schema 4');
INSERT INTO "run_notes" VALUES(18,'peer_version','numpy 1.24.2, python 3.11.2');
INSERT INTO "run_notes" VALUES(19,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(19,'migrated','from schema 4; options that it did not keep were read from the command line');
INSERT INTO "run_notes" VALUES(20,'complexity','computed later, from a plan of the same network that was not run');
INSERT INTO "run_notes" VALUES(20,'migrated','from schema 4; options that it did not keep were read from the command line');
CREATE TABLE "run_numbers" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "name" TEXT NOT NULL,
  "value" REAL,
  PRIMARY KEY ("run", "name")
) WITHOUT ROWID;
INSERT INTO "run_numbers" VALUES(1,'forward_flops',870080.0);
INSERT INTO "run_numbers" VALUES(1,'forward_macs',408064.0);
INSERT INTO "run_numbers" VALUES(1,'median_seconds',5.407e-05);
INSERT INTO "run_numbers" VALUES(1,'parameters',12786.0);
INSERT INTO "run_numbers" VALUES(1,'training_flops',1817000.0);
INSERT INTO "run_numbers" VALUES(3,'forward_flops',2957920.0);
INSERT INTO "run_numbers" VALUES(3,'forward_macs',1377024.0);
INSERT INTO "run_numbers" VALUES(3,'median_seconds',0.0001719);
INSERT INTO "run_numbers" VALUES(3,'parameters',27354.0);
INSERT INTO "run_numbers" VALUES(3,'training_flops',4269000.0);
INSERT INTO "run_numbers" VALUES(4,'forward_flops',140304.0);
INSERT INTO "run_numbers" VALUES(4,'forward_macs',63520.0);
INSERT INTO "run_numbers" VALUES(4,'median_seconds',5.491e-05);
INSERT INTO "run_numbers" VALUES(4,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(4,'training_flops',309100.0);
INSERT INTO "run_numbers" VALUES(5,'forward_flops',420912.0);
INSERT INTO "run_numbers" VALUES(5,'forward_macs',190560.0);
INSERT INTO "run_numbers" VALUES(5,'median_seconds',2.792e-05);
INSERT INTO "run_numbers" VALUES(5,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(5,'training_flops',847800.0);
INSERT INTO "run_numbers" VALUES(6,'forward_flops',17538.0);
INSERT INTO "run_numbers" VALUES(6,'forward_macs',7940.0);
INSERT INTO "run_numbers" VALUES(6,'median_seconds',3.882e-06);
INSERT INTO "run_numbers" VALUES(6,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(8,'final_test_accuracy',0.0625);
INSERT INTO "run_numbers" VALUES(8,'forward_flops',10093560.0);
INSERT INTO "run_numbers" VALUES(8,'forward_macs',4810880.0);
INSERT INTO "run_numbers" VALUES(8,'parameters',53866.0);
INSERT INTO "run_numbers" VALUES(8,'training_flops',27990000.0);
INSERT INTO "run_numbers" VALUES(9,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(9,'forward_flops',841824.0);
INSERT INTO "run_numbers" VALUES(9,'forward_macs',381120.0);
INSERT INTO "run_numbers" VALUES(9,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(9,'training_flops',1728000.0);
INSERT INTO "run_numbers" VALUES(10,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(10,'forward_flops',841824.0);
INSERT INTO "run_numbers" VALUES(10,'forward_macs',381120.0);
INSERT INTO "run_numbers" VALUES(10,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(10,'training_flops',1728000.0);
INSERT INTO "run_numbers" VALUES(11,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(11,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(11,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(11,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(11,'training_flops',562600.0);
INSERT INTO "run_numbers" VALUES(12,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(12,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(12,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(12,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(12,'training_flops',562600.0);
INSERT INTO "run_numbers" VALUES(13,'final_test_accuracy',0.0);
INSERT INTO "run_numbers" VALUES(13,'forward_flops',1333872.0);
INSERT INTO "run_numbers" VALUES(13,'forward_macs',636672.0);
INSERT INTO "run_numbers" VALUES(13,'parameters',9970.0);
INSERT INTO "run_numbers" VALUES(13,'training_flops',3270000.0);
INSERT INTO "run_numbers" VALUES(14,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(14,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(14,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(14,'profiled_seconds',3.035e-05);
INSERT INTO "run_numbers" VALUES(14,'training_flops',578500.0);
INSERT INTO "run_numbers" VALUES(15,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(15,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(15,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(15,'training_flops',578488.0);
INSERT INTO "run_numbers" VALUES(18,'forward_flops',165744.0);
INSERT INTO "run_numbers" VALUES(18,'forward_macs',76224.0);
INSERT INTO "run_numbers" VALUES(18,'median_seconds',9.904e-05);
INSERT INTO "run_numbers" VALUES(18,'parameters',9550.0);
INSERT INTO "run_numbers" VALUES(18,'training_flops',368294.0);
INSERT INTO "run_numbers" VALUES(19,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(19,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(19,'median_seconds',0.012);
INSERT INTO "run_numbers" VALUES(19,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(19,'training_flops',578500.0);
INSERT INTO "run_numbers" VALUES(20,'final_test_accuracy',0.125);
INSERT INTO "run_numbers" VALUES(20,'forward_flops',280608.0);
INSERT INTO "run_numbers" VALUES(20,'forward_macs',127040.0);
INSERT INTO "run_numbers" VALUES(20,'parameters',7960.0);
INSERT INTO "run_numbers" VALUES(20,'training_flops',562600.0);
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
  "backend" TEXT,
  "device" TEXT,
  "threads" INTEGER,
  "study" TEXT,
  "item" TEXT
, "network" TEXT REFERENCES "networks" ("key"), "turns" INTEGER, "init" TEXT, "weights" TEXT, "freeze" TEXT, "full_batch" INTEGER, "learning_rate" REAL, "momentum" REAL, "nesterov" INTEGER, "weight_decay" REAL, "label_smoothing" REAL, "loss_scale" REAL, "test_samples" INTEGER, "augment" TEXT, "loader" INTEGER, "last_batch" TEXT, "epochs" INTEGER, "first_epoch" INTEGER, "target_accuracy" REAL, "schedule" TEXT, "schedule_step" INTEGER, "schedule_gamma" REAL, "warmup_epochs" INTEGER, "workers" INTEGER, "ranks" INTEGER, "deterministic" INTEGER, "recompute" INTEGER, "disabled_passes" TEXT, "modes" TEXT, "model_hash" TEXT, "micro_batch" INTEGER, "clip_norm" REAL, "synchronised_norms" INTEGER, "nodes" INTEGER, "transport" TEXT, "bucket_bytes" INTEGER, "reduce" TEXT);
INSERT INTO "runs" VALUES(1,'00000005-0000-4000-8000-000000000005','desk-key','bench','ridgeline bench mlp --batch 32 --backend native,onednn --set hidden=16,8 --momentum 0.8 --nesterov --weight-decay 0.0001 --lr 0.05 --deterministic --no-pass fusion --no-pass inplace --init he --iterations 3 --warmup 1 --label ''first try'' --store s.db --env-label desk --telemetry 5','00000011-0000-4000-8000-000000000011','first try','2026-11-01T10:01:00.000Z','2026-11-01T10:01:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"16,8"}',32,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'native','cpu',2,NULL,NULL,'d1b170529b2ab39a',NULL,'he',NULL,NULL,0,0.05,0.8,1,0.0001,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,1,0,'["fusion","inplace"]',NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(3,'0000000c-0000-4000-8000-00000000000c','desk-key','bench','ridgeline bench mnist_cnn --set filters=4,8 --loader --workers 2 --samples 64 --batch 16 --recompute --label-smoothing 0.1 --freeze ''conv1.*'' --freeze ''conv2.*'' --normalize mnist --optimizer adamw --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','00000012-0000-4000-8000-000000000012',NULL,'2026-11-01T10:03:00.000Z','2026-11-01T10:03:30.000Z','complete',NULL,0,'training','mnist_cnn','{"activation":"relu","blocks":"0","filters":"4,8","hidden":"128","kernel":"3"}',16,'1x28x28',10,'fp32','adamw','synthetic',64,'[0.1307,0.3081]','native','cpu',2,NULL,NULL,'b7091ea8238d94b2',NULL,'pytorch',NULL,'["conv1.*","conv2.*"]',0,0.001,0.0,0,0.01,0.1,NULL,0,'none',1,'smaller',0,0,NULL,'constant',0,0.0,0,2,1,0,1,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(4,'00000007-0000-4000-8000-000000000007','desk-key','bench','ridgeline bench mlp --batch 8,full --samples 24 --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','00000013-0000-4000-8000-000000000013',NULL,'2026-11-01T10:04:00.000Z','2026-11-01T10:04:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',8,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.01,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(5,'0000000f-0000-4000-8000-00000000000f','desk-key','bench','ridgeline bench mlp --batch 8,full --samples 24 --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','00000013-0000-4000-8000-000000000013',NULL,'2026-11-01T10:05:00.000Z','2026-11-01T10:05:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',24,'1x28x28',10,'fp32','sgd','synthetic',24,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,1,0.01,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(6,'00000003-0000-4000-8000-000000000003','desk-key','bench','ridgeline bench mlp --inference --batch 4 --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','00000014-0000-4000-8000-000000000014',NULL,'2026-11-01T10:06:00.000Z','2026-11-01T10:06:30.000Z','complete',NULL,0,'inference','mlp','{"activation":"relu","depth":"1","hidden":"10"}',1,'1x28x28',10,'fp32',NULL,'synthetic',0,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,NULL,0.0,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(8,'0000000a-0000-4000-8000-00000000000a','desk-key','train','ridgeline train mnist_cnn --data synthetic:1x28x28:10:64 --validation 16 --batch 20 --epochs 2 --recompute --no-pass fusion --init he --schedule step --step-size 1 --gamma 0.5 --warmup 0 --flip --workers 3 --target-accuracy 99.5% --last-batch drop --lr 0.02 --momentum 0.9 --store s.db --env-label desk --telemetry 5','00000015-0000-4000-8000-000000000015',NULL,'2026-11-01T10:08:00.000Z','2026-11-01T10:08:30.000Z','complete',NULL,0,'training','mnist_cnn','{"activation":"relu","blocks":"0","filters":"8,16","hidden":"128","kernel":"3"}',20,'1x28x28',10,'fp32','sgd','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'4416d88df3beaaa0',NULL,'he',NULL,NULL,0,0.02,0.9,0,0.0,0.0,NULL,16,'flip',1,'drop',2,0,0.995,'step',1,0.5,0,3,1,0,1,'["fusion"]',NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(9,'00000010-0000-4000-8000-000000000010','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --full-batch --iterations 4 --eval-every 2 --optimizer adam --store s.db --env-label desk --telemetry 5 --checkpoint ck','00000016-0000-4000-8000-000000000016',NULL,'2026-11-01T10:09:00.000Z','2026-11-01T10:09:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',48,'1x28x28',10,'fp32','adam','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,1,0.001,0.0,0,0.0,0.0,NULL,16,'none',0,'smaller',4,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(10,'00000002-0000-4000-8000-000000000002','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --full-batch --iterations 7 --eval-every 2 --optimizer adam --store s.db --env-label desk --telemetry 5 --checkpoint ck --resume','00000017-0000-4000-8000-000000000017',NULL,'2026-11-01T10:10:00.000Z','2026-11-01T10:10:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',48,'1x28x28',10,'fp32','adam','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,1,0.001,0.0,0,0.0,0.0,NULL,16,'none',0,'smaller',7,4,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(11,'0000000e-0000-4000-8000-00000000000e','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --batch 16 --epochs 1 --store s.db --env-label desk --telemetry 5 --checkpoint ''check points''','00000018-0000-4000-8000-000000000018',NULL,'2026-11-01T10:11:00.000Z','2026-11-01T10:11:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.01,0.0,0,0.0,0.0,NULL,16,'none',1,'smaller',1,0,NULL,'constant',0,0.0,0,4,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(12,'0000000b-0000-4000-8000-00000000000b','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --batch 16 --epochs=2 --store s.db --env-label desk --telemetry 5 --checkpoint ''check points'' --resume','00000019-0000-4000-8000-000000000019',NULL,'2026-11-01T10:12:00.000Z','2026-11-01T10:12:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.01,0.0,0,0.0,0.0,NULL,16,'none',1,'smaller',2,1,NULL,'constant',0,0.0,0,4,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(13,'00000001-0000-4000-8000-000000000001','desk-key','train','ridgeline train mnist_cnn --data photos --image 16x16 --batch 8 --epochs 1 --store s.db --env-label desk --telemetry 5','0000001a-0000-4000-8000-00000000001a',NULL,'2026-11-01T10:13:00.000Z','2026-11-01T10:13:30.000Z','complete',NULL,0,'training','mnist_cnn','{"activation":"relu","blocks":"0","filters":"8,16","hidden":"128","kernel":"3"}',8,'3x16x16',2,'fp32','sgd','photos',22,'[0.485,0.456,0.406,0.229,0.224,0.225]','native','cpu',2,NULL,NULL,'78af0ce30d84f7a0',NULL,'pytorch',NULL,NULL,0,0.01,0.0,0,0.0,0.0,NULL,2,'crop',1,'smaller',1,0,NULL,'constant',0,0.0,0,4,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(14,'00000004-0000-4000-8000-000000000004','desk-key','profile','ridgeline profile mlp --batch 16 --steps 2 --no-roof --lr 0.3 --store s.db --env-label desk --telemetry 5','0000001b-0000-4000-8000-00000000001b',NULL,'2026-11-01T10:14:00.000Z','2026-11-01T10:14:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.3,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(15,'00000008-0000-4000-8000-000000000008','desk-key','bench','ridgeline bench mlp --batch 16 --backend torch-cpu+channels_last+amp,numpy --iterations 3 --warmup 1 --store s.db --env-label desk --telemetry 5','0000001c-0000-4000-8000-00000000001c',NULL,'2026-11-01T10:15:00.000Z','2026-11-01T10:15:30.000Z','failed','torch-cpu+channels_last+amp: amp computes in bf16 or fp16, and this run is in fp32: choose the precision bf16 or fp16',0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'torch-cpu','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.01,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,'["amp","channels_last"]',NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(18,'00000009-0000-4000-8000-000000000009','mac-key','bench','worker.py --alone --models mlp --peers numpy --batch 8 --warmup 2 --iterations 3 --threads 1 --set hidden=12 --lr 0.04 --env-label mac --out mac.json','0000001d-0000-4000-8000-00000000001d',NULL,'2026-11-01T10:18:00.000Z','2026-11-01T10:18:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"12"}',8,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'numpy','cpu',1,NULL,NULL,'48bd1f7c74de6187',NULL,'pytorch',NULL,NULL,0,0.04,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(19,'00000006-0000-4000-8000-000000000006','desk-key','bench','ridgeline bench mlp --backend native --batch 16 --momentum 0.9 --max-seconds 0.2 --store s.db --env-label desk --study-item 00000020-0000-4000-8000-000000000020 speed/mlp/batch=16 --json','0000001e-0000-4000-8000-00000000001e',NULL,'2026-11-01T10:19:00.000Z','2026-11-01T10:19:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',0,NULL,'native','cpu',2,'00000020-0000-4000-8000-000000000020','speed/mlp/batch=16','04a2038e653e3a05',NULL,'pytorch',NULL,NULL,0,0.01,0.9,0,0.0,0.0,NULL,0,'none',0,'smaller',0,0,NULL,'constant',0,0.0,0,0,1,0,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
INSERT INTO "runs" VALUES(20,'0000000d-0000-4000-8000-00000000000d','desk-key','train','ridgeline train mlp --data synthetic:1x28x28:10:64 --validation 16 --batch 16 --epochs 1 --weights ''my weights/start.safetensors'' --schedule cosine --warmup 1 --epochs 3 --deterministic --store s.db --env-label desk --telemetry 5','0000001f-0000-4000-8000-00000000001f',NULL,'2026-11-01T10:20:00.000Z','2026-11-01T10:20:30.000Z','complete',NULL,0,'training','mlp','{"activation":"relu","depth":"1","hidden":"10"}',16,'1x28x28',10,'fp32','sgd','synthetic',48,NULL,'native','cpu',2,NULL,NULL,'04a2038e653e3a05',NULL,'pytorch','start.safetensors',NULL,0,0.01,0.0,0,0.0,0.0,NULL,16,'none',1,'smaller',3,0,NULL,'cosine',0,0.0,1,4,1,1,0,NULL,NULL,NULL,0,0.0,0,1,NULL,0,NULL);
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
  "optimizer_seconds" REAL, "exchange_seconds" REAL, "exposed_seconds" REAL,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "samples" VALUES(1,0,0,0,0,'warmup',0.03171,0.009795,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(1,1,0,1,1,'warmup',0.252,8.47e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(1,2,0,1,2,'measured',0.252,5.407e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,0,0,0,0,'warmup',0.02484,0.08235,NULL,0.0,5.334e-06,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,1,0,1,1,'measured',0.1075,0.0001614,NULL,0.0,1.639e-06,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(3,2,0,1,2,'measured',0.1076,0.003543,NULL,0.003421,3.877e-06,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(4,0,0,0,0,'warmup',0.01084,0.001152,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(4,1,0,1,1,'warmup',0.0229,3.991e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(4,2,0,1,2,'measured',0.02295,0.01296,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(5,0,0,0,0,'warmup',0.01422,8.436e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(5,1,0,1,1,'warmup',0.01853,4.631e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(5,2,0,1,2,'measured',0.01858,2.491e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(6,0,0,0,0,'warmup',0.008188,3.417e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(6,1,0,1,1,'warmup',0.01492,1.217e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(6,2,0,1,2,'measured',0.01493,4.094e-06,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,0,0,0,0,'warmup',0.0004184,0.007624,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,1,0,0,1,'warmup',0.008047,2.704e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(14,2,0,0,2,'warmup',0.008075,2.417e-05,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(18,0,0,0,0,'warmup',0.07859,0.0003382,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(18,1,0,0,1,'warmup',0.07893,0.0001558,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(18,2,0,0,2,'measured',0.0791,0.0001137,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(19,0,0,0,0,'warmup',0.0006181,0.01885,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(19,1,0,0,1,'warmup',0.01948,0.01198,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "samples" VALUES(19,2,0,0,2,'warmup',0.03146,0.01199,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO "steps" VALUES(1,0,0,'input','normalize','input','native','native:normalize',7.036e-06,50176,50176,25088,100352,125440,'fp32',1.0,NULL,'input normalize input');
INSERT INTO "steps" VALUES(1,1,1,'fc1','linear','forward','native','native:linear',1.465e-05,802816,802816,150528,2048,287744,'fp32',1.0,NULL,'forward linear fc1');
INSERT INTO "steps" VALUES(3,0,0,'input','normalize','input','native','native:normalize',3.239e-06,25088,25088,12544,50176,62720,'fp32',1.0,NULL,'input normalize input');
INSERT INTO "steps" VALUES(3,1,1,'conv1','conv2d+bias+activation','forward','native','native:conv2d_epilogue',4.654e-05,865280,865280,50336,173056,229472,'fp32',1.0,NULL,'forward conv2d conv1; forward bias conv1; forward activation act1');
INSERT INTO "steps" VALUES(4,0,0,'input','normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','input+forward+backward-data+backward-weights','native','native:mlp_step',1.899e-05,269344,269344,38176,31876,255428,'fp32',1.0,NULL,'input normalize input; forward reshape flatten; forward linear fc1; forward bias fc1; forward activation act1; forward linear fc2; forward bias fc2; forward softmax_cross_entropy loss; forward metrics loss; backward-data softmax_cross_entropy_backward loss; backward-weights bias_backward fc2; backward-weights linear_backward_weights fc2; backward-data linear_backward_data fc2; backward-data activation_backward act1; backward-weights bias_backward fc1; backward-weights linear_backward_weights fc1');
INSERT INTO "steps" VALUES(4,1,1,'fc1','sgd','optimizer','native','native:sgd_all',2.008e-06,39800,39800,95520,63680,95520,'fp32',1.0,NULL,'optimizer sgd fc1; optimizer sgd fc1; optimizer sgd fc2; optimizer sgd fc2');
INSERT INTO "steps" VALUES(5,0,0,'input','normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','input+forward+backward-data+backward-weights','native','native:mlp_step',2.239e-05,808032,808032,50784,31876,268036,'fp32',1.0,NULL,'input normalize input; forward reshape flatten; forward linear fc1; forward bias fc1; forward activation act1; forward linear fc2; forward bias fc2; forward softmax_cross_entropy loss; forward metrics loss; backward-data softmax_cross_entropy_backward loss; backward-weights bias_backward fc2; backward-weights linear_backward_weights fc2; backward-data linear_backward_data fc2; backward-data activation_backward act1; backward-weights bias_backward fc1; backward-weights linear_backward_weights fc1');
INSERT INTO "steps" VALUES(5,1,1,'fc1','sgd','optimizer','native','native:sgd_all',1.434e-06,39800,39800,95520,63680,95520,'fp32',1.0,NULL,'optimizer sgd fc1; optimizer sgd fc1; optimizer sgd fc2; optimizer sgd fc2');
INSERT INTO "steps" VALUES(6,0,0,'input','normalize','input','native','native:normalize',2.435e-07,1568,1568,784,3136,3920,'fp32',1.0,NULL,'input normalize input');
INSERT INTO "steps" VALUES(6,1,1,'fc1','linear+bias+activation','forward','native','native:linear_epilogue',2.71e-06,15700,15700,34536,40,65936,'fp32',1.0,NULL,'forward linear fc1; forward bias fc1; forward activation act1');
INSERT INTO "steps" VALUES(14,0,0,'input','normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','input+forward+backward-data+backward-weights','native','native:mlp_step',2.658e-05,538688,538688,44480,31876,261732,'fp32',1.0,NULL,'input normalize input; forward reshape flatten; forward linear fc1; forward bias fc1; forward activation act1; forward linear fc2; forward bias fc2; forward softmax_cross_entropy loss; forward metrics loss; backward-data softmax_cross_entropy_backward loss; backward-weights bias_backward fc2; backward-weights linear_backward_weights fc2; backward-data linear_backward_data fc2; backward-data activation_backward act1; backward-weights bias_backward fc1; backward-weights linear_backward_weights fc1');
INSERT INTO "steps" VALUES(14,1,1,'fc1','sgd','optimizer','native','native:sgd_all',2.969e-06,39800,39800,95520,63680,95520,'fp32',1.0,NULL,'optimizer sgd fc1; optimizer sgd fc1; optimizer sgd fc2; optimizer sgd fc2');
INSERT INTO "steps" VALUES(19,0,0,'input','normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','input+forward+backward-data+backward-weights','native','native:mlp_step',0.012,538688,538688,44480,31876,261732,'fp32',1.0,NULL,'input normalize input; forward reshape flatten; forward linear fc1; forward bias fc1; forward activation act1; forward linear fc2; forward bias fc2; forward softmax_cross_entropy loss; forward metrics loss; backward-data softmax_cross_entropy_backward loss; backward-weights bias_backward fc2; backward-weights linear_backward_weights fc2; backward-data linear_backward_data fc2; backward-data activation_backward act1; backward-weights bias_backward fc1; backward-weights linear_backward_weights fc1');
INSERT INTO "steps" VALUES(19,1,1,'fc1','sgd','optimizer','native','native:sgd_all',3.555e-06,39800,39800,95520,63680,95520,'fp32',1.0,NULL,'optimizer sgd fc1; optimizer sgd fc1; optimizer sgd fc2; optimizer sgd fc2');
CREATE TABLE "studies" (
  "uuid" TEXT NOT NULL PRIMARY KEY,
  "name" TEXT,
  "scale" TEXT,
  "environment" TEXT REFERENCES "environments" ("key"),
  "options" TEXT,
  "definition" TEXT,
  "started" TEXT,
  "finished" TEXT
);
INSERT INTO "studies" VALUES('00000020-0000-4000-8000-000000000020','tiny','small','desk-key',NULL,'name = ''tiny''','2026-11-01T10:19:00.000Z','2026-11-01T10:19:40.000Z');
CREATE TABLE "study_items" (
  "study" TEXT NOT NULL REFERENCES "studies" ("uuid") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "key" TEXT NOT NULL,
  "title" TEXT,
  "command" TEXT,
  "status" TEXT,
  "reason" TEXT,
  "substitute" TEXT,
  "estimated_seconds" REAL,
  "seconds" REAL,
  PRIMARY KEY ("study", "key")
) WITHOUT ROWID;
INSERT INTO "study_items" VALUES('00000020-0000-4000-8000-000000000020',0,'speed/cuda','cuda','bench','left out','no GPU: no NVIDIA driver was found',NULL,0.0,NULL);
INSERT INTO "study_items" VALUES('00000020-0000-4000-8000-000000000020',1,'speed/mlp/batch=16','mlp, batch 16: native','bench mlp --backend native --batch 16 --momentum 0.9 --max-seconds 0.2','done',NULL,NULL,0.701,3.063);
CREATE TABLE "timeline" (
  "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
  "number" INTEGER NOT NULL,
  "activity" TEXT,
  "name" TEXT,
  "track" TEXT,
  "begin_seconds" REAL,
  "end_seconds" REAL,
  "step" INTEGER,
  PRIMARY KEY ("run", "number")
) WITHOUT ROWID;
INSERT INTO "timeline" VALUES(14,0,'iteration','iteration 0','host',0.0,3.61e-05,-1);
INSERT INTO "timeline" VALUES(14,1,'step','input normalize+reshape+linear+bias+activation+linear+bias+softmax_cross_entropy+metrics+softmax_cross_entropy_backward+bias_backward+linear_backward_weights+linear_backward_data+activation_backward+bias_backward+linear_backward_weights','host',9.98e-07,3.218e-05,0);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',20);
COMMIT;
