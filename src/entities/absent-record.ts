import { Entity } from "typeorm";
import { OfListedRecord } from "./of-list";

/** A record of the copy that the walk of a reconciling run has not seen so far. */
@Entity("absent_record")
export class AbsentRecordRow extends OfListedRecord {}
