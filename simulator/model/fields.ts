import type { GetDealFields200ResponseDataInner } from "pipedrive/v2";

export type FieldEntity = "deal" | "person" | "organization";
export type FieldType = GetDealFields200ResponseDataInner["field_type"];

interface FieldOption {
  id: number;
  label: string;
  color: string | null;
}

export interface Field {
  field_name: string;
  field_code: string;
  field_type: FieldType;
  options: FieldOption[] | null;
  subfields: { field_code: string; field_name: string; field_type: string }[] | null;
  is_custom_field: boolean;
  is_optional_response_field: boolean;
  /** False of one that only the CRM fills, a formula for one, whatever its type; one report alone tells of it. */
  is_writable?: boolean;
}
